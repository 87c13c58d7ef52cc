package eddyline.catalyst;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.HashSet;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

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

    /**
     * A plan without dynamic partition pruning, which changes no row and which Spark puts in anew
     * where it optimizes again. What prunes holds a whole other side of a join: it would be
     * computed beside an input, and is not valid where columns have become others.
     */
    public static LogicalPlan withoutPruning(LogicalPlan plan) {
        if (!plan.containsPattern(TreePattern.DYNAMIC_PRUNING_SUBQUERY())) {
            return plan;
        }
        ArrayList children = new ArrayList();
        for (int n = 0; n < plan.children().length(); n++) {
            children.add(withoutPruning((LogicalPlan) plan.children().apply(n)));
        }
        if (plan instanceof Filter) {
            Expression left = withoutPruning(((Filter) plan).condition());
            LogicalPlan child = (LogicalPlan) children.get(0);
            return left == null ? child : new Filter(left, child);
        }
        return (LogicalPlan) plan.withNewChildren(PythonUtils.toSeq(children).toIndexedSeq());
    }

    /** A condition without the conjuncts that prune; null if none is left. */
    private static Expression withoutPruning(Expression condition) {
        if (condition instanceof DynamicPruning) {
            return null;
        }
        if (!(condition instanceof And)) {
            return condition;
        }
        Expression left = withoutPruning(((And) condition).left());
        Expression right = withoutPruning(((And) condition).right());
        return left == null ? right : right == null ? left : new And(left, right);
    }

    /**
     * An expression with others in place of parts of it. An attribute is the same whatever it is called in a
     * query and whether it may be NULL there, as above an outer join.
     */
    public static Expression inTermsOf(Expression expression, ArrayList parts, ArrayList others) {
        for (int n = 0; n < parts.size(); n++) {
            if (expression.semanticEquals((Expression) parts.get(n))) {
                return (Expression) others.get(n);
            }
        }
        Seq old = expression.children();
        if (old.isEmpty()) {
            return expression;
        }
        ArrayList children = new ArrayList();
        for (int n = 0; n < old.size(); n++) {
            children.add(inTermsOf((Expression) old.apply(n), parts, others));
        }
        return (Expression) expression.withNewChildren(PythonUtils.toSeq(children).toIndexedSeq());
    }

    /** What a session's optimizer makes of a plan that is to have the columns of another, in their order. */
    public static LogicalPlan optimizedLike(SparkSession session, LogicalPlan like, LogicalPlan plan) {
        LogicalPlan made = new Project((Seq) like.output(), plan);
        made.setAnalyzed();
        return (LogicalPlan) session.sessionState().optimizer().execute(made);
    }

    /** A node with other plans in its subqueries, in their order; null if it has other than so many. */
    public static LogicalPlan withSubqueries(LogicalPlan node, ArrayList plans) {
        OtherPlans others = new OtherPlans(plans);
        LogicalPlan made = (LogicalPlan) node.mapExpressions(others);
        return others.next == plans.size() ? made : null;
    }

    /** Puts plans in place of those in subqueries, one after the other. */
    private static final class OtherPlans extends AbstractFunction1 {
        private final ArrayList plans;
        private int next = 0;

        OtherPlans(ArrayList plans) {
            this.plans = plans;
        }

        public Object apply(Object given) {
            Expression expression = (Expression) given;
            if (!expression.containsPattern(TreePattern.PLAN_EXPRESSION())) {
                return expression;
            }
            if (expression instanceof PlanExpression) {
                LogicalPlan plan = next < plans.size() ? (LogicalPlan) plans.get(next) : null;
                next++;
                return plan == null ? expression : ((PlanExpression) expression).withNewPlan(plan);
            }
            ArrayList children = new ArrayList();
            for (int n = 0; n < expression.children().length(); n++) {
                children.add(apply(expression.children().apply(n)));
            }
            return expression.withNewChildren(PythonUtils.toSeq(children).toIndexedSeq());
        }
    }

    /** A plan as it is, with a mark for `AdaptingRule`: that of equal plans the same becomes. */
    public static LogicalPlan lasting(LogicalPlan plan) {
        plan.setTagValue(new TreeNodeTag("eddyline.lasts"), Boolean.TRUE);
        return plan;
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

    /**
     * The rows of several plans as those of one: the first column says of which plan a row is, the others
     * hold columns of its type, NULL where the plan has none left. See `places`.
     */
    public static LogicalPlan together(ArrayList plans) {
        ArrayList types = new ArrayList();
        ArrayList placed = placed(plans, types);
        ArrayList children = new ArrayList();
        for (int n = 0; n < plans.size(); n++) {
            LogicalPlan plan = (LogicalPlan) plans.get(n);
            Expression[] columns = new Expression[types.size()];
            for (int place = 0; place < columns.length; place++) {
                columns[place] = new Literal(null, (DataType) types.get(place));
            }
            int[] places = (int[]) placed.get(n);
            for (int column = 0; column < places.length; column++) {
                columns[places[column]] = (Expression) plan.output().apply(column);
            }
            ArrayList items = new ArrayList();
            items.add(named(new Literal(Integer.valueOf(n), DataTypes.IntegerType), "input"));
            for (int place = 0; place < columns.length; place++) {
                items.add(named(columns[place], "c" + place));
            }
            children.add(new Project(PythonUtils.toSeq(items), plan));
        }
        return new Union(PythonUtils.toSeq(children), false, false);
    }

    /** Where `together` puts the columns of each plan: "0,1;0,2", from the second column on. */
    public static String places(ArrayList plans) {
        StringBuilder found = new StringBuilder();
        ArrayList placed = placed(plans, new ArrayList());
        for (int n = 0; n < placed.size(); n++) {
            int[] places = (int[]) placed.get(n);
            found.append(n == 0 ? "" : ";");
            for (int column = 0; column < places.length; column++) {
                found.append(column == 0 ? "" : ",").append(places[column]);
            }
        }
        return found.toString();
    }

    /** Give each column of each plan the first place of its type that no other column of the plan has. */
    private static ArrayList placed(ArrayList plans, ArrayList types) {
        ArrayList placed = new ArrayList();
        for (int n = 0; n < plans.size(); n++) {
            Seq output = ((LogicalPlan) plans.get(n)).output();
            int[] places = new int[output.size()];
            HashSet taken = new HashSet();
            for (int column = 0; column < places.length; column++) {
                DataType type = ((Expression) output.apply(column)).dataType();
                int place = 0;
                while (place < types.size() && (taken.contains(Integer.valueOf(place)) || !types.get(place).equals(type))) {
                    place++;
                }
                if (place == types.size()) {
                    types.add(type);
                }
                taken.add(Integer.valueOf(place));
                places[column] = place;
            }
            placed.add(places);
        }
        return placed;
    }

    private static Alias named(Expression value, String name) {
        return new Alias(value, name, NamedExpression$.MODULE$.newExprId(), nothing(), Option.empty(), nothing());
    }

    private static Seq nothing() {
        return PythonUtils.toSeq(new ArrayList());
    }
}
