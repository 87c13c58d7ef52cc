package eddyline.catalyst;

import java.util.ArrayList;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;

/**
 * Puts the outcome of keys that were asked for directly beside the scan that waits for it.
 *
 * The scan is antijoined with all rows of a shuffle, and adaptive execution drops it when that stage is over and has
 * any row. But it knows the rows of a stage, and not of what stands above one. Spark's optimizer puts a projection
 * between, as no column is needed, and a limit; so the rows would be broadcast, in a job, before anybody knew.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class OpenGates extends Rule {
    private String named;

    /** Be a rule of a session's optimizer, unless one of this class is: after all of Spark's.
     *
     * @param named what the names of functions begin with that ask for keys
     */
    public void install(SparkSession session, String named) {
        this.named = named;
        ExperimentalMethods methods = session.experimental();
        synchronized (methods) {
            Seq rules = methods.extraOptimizations();
            ArrayList all = new ArrayList();
            for (int n = 0; n < rules.length(); n++) {
                if (rules.apply(n) instanceof OpenGates) {
                    return;
                }
                all.add(rules.apply(n));
            }
            all.add(this);
            methods.extraOptimizations_$eq(PythonUtils.toSeq(all).toIndexedSeq());
        }
    }

    public TreeNode apply(TreeNode tree) {
        return opened((LogicalPlan) tree);
    }

    private LogicalPlan opened(LogicalPlan plan) {
        if (!plan.containsPattern(TreePattern.PYTHON_UDF()) || !plan.containsPattern(TreePattern.JOIN())) {
            return plan;
        }
        boolean changed = false;
        ArrayList children = new ArrayList();
        for (int n = 0; n < plan.children().length(); n++) {
            LogicalPlan child = (LogicalPlan) plan.children().apply(n);
            LogicalPlan now = n == 1 && waits(plan) ? outcome(child) : child;
            now = opened(now);
            changed = changed || now != child;
            children.add(now);
        }
        return changed ? (LogicalPlan) plan.withNewChildren(PythonUtils.toSeq(children).toIndexedSeq()) : plan;
    }

    private static boolean waits(LogicalPlan plan) {
        return plan instanceof Join && ((Join) plan).joinType() == LeftAnti$.MODULE$
            && ((Join) plan).condition().isEmpty();
    }

    /** Return the shuffle below what Spark has put above it; the plan itself if it is another one. */
    private LogicalPlan outcome(LogicalPlan plan) {
        LogicalPlan below = plan;
        while (below instanceof LocalLimit || below instanceof Project && below.output().isEmpty()) {
            below = (LogicalPlan) below.children().apply(0);
        }
        return below instanceof RepartitionByExpression && asks((LogicalPlan) below.children().apply(0)) ? below : plan;
    }

    private boolean asks(LogicalPlan plan) {
        if (plan instanceof MapInArrow) {
            Expression function = (Expression) ((MapInArrow) plan).functionExpr();
            return function instanceof PythonUDF && ((PythonUDF) function).name().startsWith(named);
        }
        return false;
    }
}
