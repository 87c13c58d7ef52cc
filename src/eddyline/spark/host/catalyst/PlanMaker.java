package eddyline.catalyst;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.Option;
import scala.collection.immutable.Seq;

/** Makes nodes and expressions that would take many crossings, or an analysis of all below them. */
public final class PlanMaker {
    /** A plan of one row and one column as a value; what versions of Spark have added is as by default. */
    public static Expression scalarSubquery(LogicalPlan plan) throws Exception {
        Constructor made = null;
        Constructor[] all = ScalarSubquery.class.getConstructors();
        for (int n = 0; n < all.length; n++) {
            if (made == null || all[n].getParameterTypes().length > made.getParameterTypes().length) {
                made = all[n];
            }
        }
        Object[] given = new Object[made.getParameterTypes().length];
        given[0] = plan;
        for (int n = 1; n < given.length; n++) {
            given[n] = ScalarSubquery$.class.getMethod("apply$default$" + (n + 1), new Class[0])
                .invoke(ScalarSubquery$.MODULE$, new Object[0]);
        }
        return (Expression) made.newInstance(given);
    }

    /** A node of one child over the rows of another plan, column by column in place of the child's. */
    public static LogicalPlan overRowsOf(LogicalPlan node, LogicalPlan plan) {
        Seq old = ((LogicalPlan) node.children().apply(0)).output();
        ArrayList items = new ArrayList();
        for (int n = 0; n < old.size(); n++) {
            Attribute known = (Attribute) old.apply(n);
            Expression column = (Expression) plan.output().apply(n);
            items.add(new Alias(
                column, known.name(), known.exprId(), known.qualifier(), Option.empty(), nothing()
            ));
        }
        ArrayList child = new ArrayList();
        child.add(new Project(PythonUtils.toSeq(items), plan));
        return (LogicalPlan) node.withNewChildren(PythonUtils.toSeq(child).toIndexedSeq());
    }

    private static Seq nothing() {
        return PythonUtils.toSeq(new ArrayList());
    }
}
