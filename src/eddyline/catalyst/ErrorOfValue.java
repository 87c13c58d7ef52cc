package eddyline.catalyst;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;

/** Evaluates where an error is what is asked for: through Py4J, PySpark logs each with its stack. */
public final class ErrorOfValue {
    /** What evaluating a bound expression over a row raises; null if it has a value. */
    public String of(Expression bound, InternalRow row) {
        try {
            bound.eval(row);
            return null;
        } catch (Exception error) {
            String message = error.getMessage();
            return message == null ? error.toString() : message;
        }
    }
}
