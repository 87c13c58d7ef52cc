package eddyline.catalyst;

import java.util.ArrayList;
import java.util.function.BiFunction;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.datasources.WriteFiles;

/**
 * The rule of a session's optimizer that has Python adapt what calls Python functions.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class AdaptingRule extends Rule {
    private static final ThreadLocal BUSY = new ThreadLocal();
    private static final TreeNodeTag SEEN = new TreeNodeTag("eddyline");

    private BiFunction rewrite;
    private boolean every;
    private String limited;
    private volatile boolean on = true;

    /**
     * Say what the rule does.
     *
     * @param rewrite from a plan, and the identity of the session that runs it, to one with the same output
     * @param every whether to rewrite plans without Python functions too
     * @param limited whether to rewrite only plans with limits that call functions whose names begin so; null for all
     */
    public void be(BiFunction rewrite, boolean every, String limited) {
        this.rewrite = rewrite;
        this.every = every;
        this.limited = limited;
    }

    /** Rewrite plans from now on, or leave them as they are, wherever the rule was copied to. */
    public void turn(boolean on) {
        this.on = on;
    }

    /** Have this thread's plans left as they are, or no more; tell whether they were. */
    public boolean keepOff(boolean off) {
        boolean was = BUSY.get() != null;
        if (off) {
            BUSY.set(Boolean.TRUE);
        } else {
            BUSY.remove();
        }
        return was;
    }

    public TreeNode apply(TreeNode tree) {
        LogicalPlan plan = (LogicalPlan) tree;
        if (!on || BUSY.get() != null || plan instanceof Subquery) {
            return plan;
        }
        return adapted(plan);
    }

    private LogicalPlan adapted(LogicalPlan plan) {
        if (!every && !plan.containsPattern(TreePattern.PYTHON_UDF())
            || plan.containsPattern(TreePattern.CTE())) {  // of which a part stands for another
            return plan;
        }
        if (limited != null && (!plan.containsPattern(TreePattern.LIMIT()) || !calls(plan))) {
            return plan;
        }
        // A plan without output is one whose rows are counted, or a limit of these, as for isEmpty.
        boolean counted = plan.output().isEmpty() && !(plan instanceof GlobalLimit);
        if (limited == null && (plan instanceof Command || plan instanceof WriteFiles || counted)) {
            ArrayList children = new ArrayList();
            for (int n = 0; n < plan.children().length(); n++) {
                children.add(adapted((LogicalPlan) plan.children().apply(n)));
            }
            return (LogicalPlan) plan.withNewChildren(PythonUtils.toSeq(children).toIndexedSeq());
        }
        if (plan.getTagValue(SEEN).isDefined()) {  // the optimizer asks until nothing changes
            return plan;
        }
        BUSY.set(Boolean.TRUE);
        LogicalPlan found;
        try {
            // The session that runs the query: perhaps a copy, with other settings, as for a stream.
            found = (LogicalPlan) rewrite.apply(plan, SparkSession.active().sessionUUID());
        } finally {
            BUSY.remove();
        }
        if (found == null) {  // Python has let go of it
            return plan;
        }
        found.setTagValue(SEEN, Boolean.TRUE);
        return found;
    }

    /** Whether a plan calls functions whose names begin as those that are to be told of limits. */
    private boolean calls(LogicalPlan plan) {
        if (!plan.containsPattern(TreePattern.PYTHON_UDF())) {
            return false;
        }
        for (int n = 0; n < plan.expressions().length(); n++) {
            Object own = plan.expressions().apply(n);
            if (own instanceof PythonUDF && ((PythonUDF) own).name().startsWith(limited)) {
                return true;
            }
        }
        return anyCalls(plan.children()) || anyCalls(plan.subqueries());
    }

    private boolean anyCalls(scala.collection.Seq plans) {
        for (int n = 0; n < plans.length(); n++) {
            if (calls((LogicalPlan) plans.apply(n))) {
                return true;
            }
        }
        return false;
    }
}
