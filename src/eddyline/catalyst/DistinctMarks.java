package eddyline.catalyst;

import java.util.ArrayList;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.KnownNullable;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.runtime.AbstractFunction1;

/**
 * Aggregates of distinct values written as plain ones over marked arguments, KnownNullable.
 *
 * For several of them in a query, or one with FILTER, the optimizer would make two aggregates over an
 * Expand of what is one; the mark says what it was.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class DistinctMarks extends AbstractFunction1 {
    public Object apply(Object node) {
        if (node instanceof LogicalPlan) {
            return ((LogicalPlan) ((LogicalPlan) node).mapChildren(this)).mapExpressions(this);
        }
        Expression expression = (Expression) ((Expression) node).mapChildren(this);
        if (!(expression instanceof AggregateExpression) || !((AggregateExpression) expression).isDistinct()) {
            return expression;
        }
        AggregateExpression aggregate = (AggregateExpression) expression;
        ArrayList arguments = new ArrayList();
        Expression function = (Expression) (Object) aggregate.aggregateFunction();
        if (((Expression) function.children().apply(0)).foldable()) {
            return expression; // its mark would be folded with it
        }
        for (int n = 0; n < function.children().size(); n++) {
            arguments.add(new KnownNullable((Expression) function.children().apply(n)));
        }
        Object[] fields = new Object[aggregate.productArity()];
        for (int n = 0; n < fields.length; n++) {
            fields[n] = aggregate.productElement(n);
        }
        fields[0] = function.withNewChildren(PythonUtils.toSeq(arguments).toIndexedSeq());
        fields[2] = Boolean.FALSE;
        return aggregate.makeCopy(fields);
    }
}
