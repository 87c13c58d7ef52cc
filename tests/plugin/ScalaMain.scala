import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.functions.call_udf

/** A program in Scala that never heard of Eddyline. */
object ScalaMain {
  def main(arguments: Array[String]): Unit = {
    val spark = SparkSession.builder().getOrCreate()
    import spark.implicits._
    val rows = spark.range(500).filter(call_udf("even", $"id") && call_udf("tenth", $"id"))
    println(s"count: ${rows.count()}")
    rows.explain()
    spark.stop()
  }
}
