package eddyline.spark;

import java.util.ArrayList;
import java.util.Arrays;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Has Python answer what stands for a table function: one row, a text and the same as JSON.
 *
 * Spark makes the plan of a table function while it holds the session's catalog, in some versions, and Python may ask
 * that for a view. So first there is a relation without rows that knows the question, and this rule of the analyzer,
 * which comes right after, has it answered.
 *
 * Written in the Java that Janino compiles, too: no lambdas, and generics are only decoration.
 */
final class AskedTables extends Rule {
    private static final TreeNodeTag QUESTION = new TreeNodeTag("eddyline.question");

    private final PythonProcess process;
    private final SparkSession session;

    AskedTables(PythonProcess process, SparkSession session) {
        this.process = process;
        this.session = session;
    }

    /** What stands for a table function until it is answered. */
    static LogicalPlan asked(String name, Seq arguments) {
        if (arguments.length() > 1) {
            throw new IllegalArgumentException("eddyline_" + name + " takes one argument at most, not "
                + arguments.length());
        }
        Object argument = arguments.isEmpty() ? null : constant(name, (Expression) arguments.apply(0));
        StructType columns = new StructType().add(name, DataTypes.StringType).add("json", DataTypes.StringType);
        LocalRelation made = relation((Seq) DataTypeUtils.toAttributes(columns), new ArrayList());
        made.setTagValue(QUESTION, new String[] {name, argument == null ? null : argument.toString()});
        return made;
    }

    private static Object constant(String name, Expression argument) {
        if (!argument.resolved() || !argument.foldable()) {
            throw new IllegalArgumentException("eddyline_" + name + " needs a constant text, as in eddyline_" + name
                + "('my_view'), not " + argument.sql());
        }
        return argument.eval(null);
    }

    public TreeNode apply(TreeNode tree) {
        return answered((LogicalPlan) tree);
    }

    private LogicalPlan answered(LogicalPlan plan) {
        if (!plan.containsPattern(TreePattern.LOCAL_RELATION())) {
            return plan;
        }
        if (plan instanceof LocalRelation) {
            Option question = plan.getTagValue(QUESTION);
            return question.isDefined() ? answer((String[]) question.get(), (LocalRelation) plan) : plan;
        }
        boolean changed = false;
        ArrayList children = new ArrayList();
        for (int n = 0; n < plan.children().length(); n++) {
            LogicalPlan child = (LogicalPlan) plan.children().apply(n);
            LogicalPlan made = answered(child);
            changed = changed || made != child;
            children.add(made);
        }
        return changed ? (LogicalPlan) plan.withNewChildren(PythonUtils.toSeq(children).toIndexedSeq()) : plan;
    }

    private LogicalPlan answer(String[] question, LocalRelation place) {
        String found = (String) process.answer(question[0], question[1], session);
        int end = found.indexOf(0);  // between the text and JSON, which has none
        if (end < 0) {
            throw new IllegalArgumentException(found);
        }
        Object[] row = {UTF8String.fromString(found.substring(0, end)), UTF8String.fromString(found.substring(end + 1))};
        return relation(place.output(), Arrays.asList(new Object[] {new GenericInternalRow(row)}));
    }

    private static LocalRelation relation(Seq output, java.util.List rows) {
        return new LocalRelation(output, PythonUtils.toSeq(rows), false, Option.empty());
    }
}
