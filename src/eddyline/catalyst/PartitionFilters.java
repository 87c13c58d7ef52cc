package eddyline.catalyst;

import java.util.ArrayList;
import java.util.HashSet;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.catalyst.util.package$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.FileScan;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * Filters over Python functions of partition columns, which Spark drops from files read by version 2.
 *
 * A scan of files takes a filter that looks at nothing but partition columns for one that it chooses
 * files by, and then leaves out those with Python functions, which it cannot evaluate there: nobody
 * filters. The optimized scan still names what was pushed to it. So it is taken back to its table with
 * all these filters, the functions in them are said not to be deterministic, which keeps a filter
 * above a scan, while Spark optimizes once more, and are said to be what they are afterwards.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class PartitionFilters {
    private final HashSet guarded = new HashSet(); // results of functions that are said not to be deterministic
    private final ArrayList dropped = new ArrayList();

    /** Whether a filter of an optimized plan was dropped, subqueries included. */
    public static boolean drops(LogicalPlan plan) {
        if (!plan.containsPattern(TreePattern.PYTHON_UDF()) && !plan.containsPattern(TreePattern.PLAN_EXPRESSION())) {
            return false;
        }
        if (plan instanceof DataSourceV2ScanRelation) {
            boolean files = ((DataSourceV2ScanRelation) plan).scan() instanceof FileScan;
            return files && plan.containsPattern(TreePattern.PYTHON_UDF());
        }
        Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            if (drops((LogicalPlan) children.next())) {
                return true;
            }
        }
        Iterator inner = plan.subqueries().iterator();
        while (inner.hasNext()) {
            if (drops((LogicalPlan) inner.next())) {
                return true;
            }
        }
        return false;
    }

    /** An optimized plan with all of its filters; the same one where a scan cannot be taken back. */
    public LogicalPlan whole(LogicalPlan plan, SparkSession session) {
        LogicalPlan written = (LogicalPlan) new Change(this, true).apply(plan);
        if (guarded.isEmpty()) {
            return plan;
        }
        LogicalPlan optimized = (LogicalPlan) session.sessionState().optimizer().execute(written);
        return (LogicalPlan) new Change(this, false).apply(optimized);
    }

    /** The filters that were dropped, as texts. */
    public ArrayList dropped() {
        return dropped;
    }

    /** A scan as its table below the filters that were pushed to it; itself if none was dropped. */
    private LogicalPlan takenBack(DataSourceV2ScanRelation scan) {
        if (!(scan.scan() instanceof FileScan) || !scan.containsPattern(TreePattern.PYTHON_UDF())) {
            return scan;
        }
        ArrayList conditions = new ArrayList();
        add(scan.expressions(), conditions);
        for (int n = 0; n < conditions.size(); n++) {
            Expression condition = (Expression) conditions.get(n);
            if (condition.containsPattern(TreePattern.PYTHON_UDF())) {
                dropped.add(package$.MODULE$.toPrettySQL(condition, true));
            }
        }
        LogicalPlan table = (LogicalPlan) (Object) scan.relation();
        if (!scan.outputSet().subsetOf(table.outputSet())) {
            return scan; // it gives something else than rows of the table
        }
        add(((FileScan) scan.scan()).partitionFilters(), conditions);
        for (int n = 0; n < conditions.size(); n++) {
            table = new Filter(guard((Expression) conditions.get(n)), table);
        }
        return new Project((Seq) (Object) scan.output(), table);
    }

    private static void add(scala.collection.Seq found, ArrayList conditions) {
        for (int n = 0; n < found.size(); n++) {
            Expression each = (Expression) found.apply(n);
            if (each.dataType().typeName().equals("boolean") && !each.references().isEmpty()
                && !each.getClass().getSimpleName().equals("AttributeReference")) {
                conditions.add(each);
            }
        }
    }

    private Expression guard(Expression expression) {
        ArrayList children = new ArrayList();
        for (int n = 0; n < expression.children().size(); n++) {
            children.add(guard((Expression) expression.children().apply(n)));
        }
        Expression over = (Expression) expression.withNewChildren(PythonUtils.toSeq(children).toIndexedSeq());
        if (!(over instanceof PythonUDF)) {
            return over;
        }
        guarded.add(((PythonUDF) over).resultId());
        return said((PythonUDF) over, false);
    }

    private static Expression said(PythonUDF function, boolean deterministic) {
        Object[] fields = new Object[function.productArity()];
        for (int n = 0; n < fields.length; n++) {
            fields[n] = PlanQuestions.fieldName(function, n).equals("udfDeterministic")
                ? Boolean.valueOf(deterministic)
                : function.productElement(n);
        }
        return (Expression) function.makeCopy(fields);
    }

    /** Takes all scans back, or says of guarded functions that they are deterministic, in subqueries too. */
    public static final class Change extends AbstractFunction1 {
        private final PartitionFilters filters;
        private final boolean back;

        Change(PartitionFilters filters, boolean back) {
            this.filters = filters;
            this.back = back;
        }

        public Object apply(Object node) {
            if (node instanceof LogicalPlan) {
                LogicalPlan plan = (LogicalPlan) node;
                if (back && plan instanceof DataSourceV2ScanRelation) {
                    return filters.takenBack((DataSourceV2ScanRelation) plan);
                }
                return ((LogicalPlan) plan.mapChildren(this)).mapExpressions(this);
            }
            Expression expression = (Expression) ((Expression) node).mapChildren(this);
            if (expression instanceof PlanExpression) {
                PlanExpression subquery = (PlanExpression) expression;
                return subquery.withNewPlan((LogicalPlan) apply(subquery.plan()));
            }
            boolean forward = !back && expression instanceof PythonUDF;
            return forward && filters.guarded.contains(((PythonUDF) expression).resultId())
                ? said((PythonUDF) expression, true)
                : expression;
        }
    }
}
