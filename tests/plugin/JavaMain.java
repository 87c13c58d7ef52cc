import org.apache.spark.sql.SparkSession;

/** A program in Java that never heard of Eddyline. */
public final class JavaMain {
    public static void main(String[] arguments) {
        SparkSession spark = SparkSession.builder().getOrCreate();
        System.out.println("count: " + spark.sql(arguments[0]).count());
        spark.sql("EXPLAIN " + arguments[0]).show(1, 0);
        spark.stop();
    }
}
