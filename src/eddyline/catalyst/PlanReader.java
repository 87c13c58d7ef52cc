package eddyline.catalyst;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.catalyst.util.package$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.TimestampType;
import scala.Product;
import scala.collection.Iterator;

/**
 * Reads a plan, or an expression, into one text; see reading.py, which knows its form.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 * What is written can be had as itself: `plan` and `expression` give what has a number.
 */
public final class PlanReader {
    /** Expressions of a projection that are not read at once where they have more nodes. */
    private static final int AT_ONCE = 3;

    private final ArrayList plans = new ArrayList();
    private final ArrayList expressions = new ArrayList();
    private final HashMap attributes = new HashMap();
    private final LinkedHashMap words = new LinkedHashMap();
    private final HashSet computed = new HashSet();
    private final IdentityHashMap shown = new IdentityHashMap();
    private final StringBuilder written = new StringBuilder();
    private final StringBuilder writtenAttributes = new StringBuilder();
    private final StringBuilder out = new StringBuilder();
    private int wordsGiven = 0;

    /** Return the reading of a whole plan, subqueries left out. */
    public static PlanReader ofPlan(LogicalPlan plan) {
        PlanReader reader = new PlanReader();
        reader.collectComputed(plan);
        reader.out.append('[');
        reader.readPlan(plan, true);
        reader.out.append(']');
        return reader;
    }

    /** Return the reading of some expressions. */
    public static PlanReader ofExpressions(scala.collection.Seq asked) {
        PlanReader reader = new PlanReader();
        reader.out.append('[');
        reader.readEach(asked);
        reader.close(']');
        return reader;
    }

    /** Return the reading of the outputs of some plans: of each how many they are, then what. */
    public static PlanReader ofOutputs(ArrayList plans) {
        PlanReader reader = new PlanReader();
        reader.out.append('[');
        for (int n = 0; n < plans.size(); n++) {
            scala.collection.Seq output = ((LogicalPlan) plans.get(n)).output();
            reader.out.append(output.size()).append(',');
            reader.readEach(output);
        }
        reader.close(']');
        return reader;
    }

    /** Say in one text what is below an expression that was not read at once. */
    public String below(int number) {
        out.setLength(0);
        writtenAttributes.setLength(0);
        out.append('[');
        readEach(((Expression) expressions.get(number)).children());
        close(']');
        return text();
    }

    public LogicalPlan plan(int number) {
        return (LogicalPlan) plans.get(number);
    }

    public Expression expression(int number) {
        return (Expression) expressions.get(number);
    }

    /** The whole text: new words, new attributes, and what was read. */
    public String text() {
        StringBuilder all = new StringBuilder("[[");
        int position = 0;
        java.util.Iterator each = words.keySet().iterator();
        while (each.hasNext()) {
            String word = (String) each.next();
            if (position++ >= wordsGiven) {
                PlanQuestions.string(all, word).append(',');
            }
        }
        wordsGiven = position;
        PlanQuestions.closed(all).append(",[").append(writtenAttributes);
        return PlanQuestions.closed(all).append(',').append(out).append(']').toString();
    }

    // -- plans -------------------------------------------------------------------------------

    /** Take note of attributes that depend on a Python function of the plan. */
    private void collectComputed(LogicalPlan plan) {
        Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            collectComputed((LogicalPlan) children.next());
        }
        if (plan instanceof BaseEvalPython) {
            Iterator results = ((BaseEvalPython) plan).resultAttrs().iterator();
            while (results.hasNext()) {
                computed.add(Long.valueOf(((NamedExpression) results.next()).exprId().id()));
            }
        } else if (plan instanceof Project) {
            Iterator items = ((Project) plan).projectList().iterator();
            while (items.hasNext()) {
                NamedExpression item = (NamedExpression) items.next();
                if (item instanceof Alias && !isNative((Alias) item)) {
                    computed.add(Long.valueOf(item.exprId().id()));
                }
            }
        }
    }

    /** Take note of the native conditions of a join: people are told of them in words. */
    private void collectShown(Expression condition) {
        if (condition instanceof And) {
            collectShown(((And) condition).left());
            collectShown(((And) condition).right());
        } else if (isNative(condition)) {
            shown.put(condition, condition);
        }
    }

    private boolean isNative(Expression tree) {
        if (tree.containsPattern(TreePattern.PYTHON_UDF())) {
            return false;
        }
        Iterator references = tree.references().iterator();
        while (references.hasNext()) {
            long number = ((NamedExpression) references.next()).exprId().id();
            if (computed.contains(Long.valueOf(number))) {
                return false;
            }
        }
        return true;
    }

    /** Whether a node's own expressions are, whatever is below it. */
    private static boolean isDeterministic(LogicalPlan plan) {
        Iterator each = plan.expressions().iterator();
        while (each.hasNext()) {
            if (!((Expression) each.next()).deterministic()) {
                return false;
            }
        }
        return true;
    }

    private void readPlan(LogicalPlan plan, boolean output) {
        int number = plans.size();
        plans.add(plan);
        out.append('[').append(word(plan.getClass().getName()));
        out.append(',').append(plan.children().size()).append(',').append(PlanQuestions.patterns(plan));
        boolean run = plan instanceof Filter || plan instanceof Project || plan instanceof BaseEvalPython;
        boolean join = plan instanceof Join;
        out.append(',').append((run || join) && !isDeterministic(plan) ? 0 : 1).append(",{");
        if (plan instanceof Filter) {
            out.append("\"condition\":");
            readWhole(((Filter) plan).condition());
        } else if (plan instanceof Project) {
            out.append("\"projectList\":[");
            Iterator items = ((Project) plan).projectList().iterator();
            while (items.hasNext()) {
                read((Expression) items.next(), true);
                out.append(',');
            }
            close(']');
        } else if (plan instanceof BaseEvalPython) {
            out.append("\"udfs\":[");
            Iterator functions = ((BaseEvalPython) plan).udfs().iterator();
            while (functions.hasNext()) {
                readWhole((Expression) functions.next());
                out.append(',');
            }
            close(']').append(",\"resultAttrs\":[");
            Iterator results = ((BaseEvalPython) plan).resultAttrs().iterator();
            while (results.hasNext()) {
                readWhole((Expression) results.next());
                out.append(',');
            }
            close(']');
        } else if (join) {
            Join joining = (Join) plan;
            boolean existence = joining.joinType()
                instanceof org.apache.spark.sql.catalyst.plans.ExistenceJoin;
            out.append("\"joinType\":");
            PlanQuestions.string(out, existence ? "EXISTENCE" : joining.joinType().sql());
            out.append(",\"condition\":");
            if (joining.condition().isDefined()) {
                Expression condition = (Expression) joining.condition().get();
                collectShown(condition);
                readWhole(condition);
            } else {
                out.append("null");
            }
        } else if (plan instanceof MapInArrow) {
            out.append("\"functionExpr\":");
            readWhole(((MapInArrow) plan).functionExpr());
        }
        if (number == 0) {
            comma();
            out.append("\"whole\":[").append(plan.isStreaming()).append(',').append(PartitionFilters.drops(plan)).append(']');
        }
        if (output || !(run || join)) {
            comma();
            out.append("\"output\":[").append(PlanQuestions.outputNumbers(plan)).append(']');
        }
        out.append("}],");
        Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            readPlan((LogicalPlan) children.next(), join);
        }
        if (number == 0) {
            out.setLength(out.length() - 1);
        }
    }

    // -- expressions -------------------------------------------------------------------------

    private void readEach(scala.collection.Seq trees) {
        Iterator each = trees.iterator();
        while (each.hasNext()) {
            readWhole((Expression) each.next());
            out.append(',');
        }
    }

    private void readWhole(Expression tree) {
        read(tree, false);
    }

    /** Write an expression, parents first; of a projection's, what is native only by its name. */
    private void read(Expression tree, boolean item) {
        out.append('[');
        boolean brief = item && tree instanceof Alias && size(tree) > AT_ONCE && isNative(tree);
        write(tree, brief);
        close(']');
    }

    private static int size(Expression tree) {
        int found = 1;
        Iterator children = tree.children().iterator();
        while (children.hasNext() && found <= AT_ONCE) {
            found += size((Expression) children.next());
        }
        return found;
    }

    private void write(Expression tree, boolean brief) {
        if (tree instanceof AttributeReference) {
            out.append(attribute((AttributeReference) tree)).append(',');
            return;
        }
        out.append('[').append(word(tree.getClass().getName())).append(',');
        out.append(tree.children().size()).append(',').append(expressions.size()).append(",{");
        expressions.add(tree);
        fields(tree);
        out.append("},{");
        told(tree);
        out.append('}');
        if (brief) {
            out.append(",[");
            Iterator references = tree.references().iterator();
            while (references.hasNext()) {
                Object each = references.next();
                if (each instanceof AttributeReference) {
                    out.append(attribute((AttributeReference) each)).append(',');
                }
            }
            close(']');
        }
        out.append("],");
        if (brief) {
            return;
        }
        Iterator children = tree.children().iterator();
        while (children.hasNext()) {
            write((Expression) children.next(), false);
        }
    }

    private int attribute(AttributeReference attribute) {
        Object known = attributes.get(attribute);
        if (known != null) {
            return ((Integer) known).intValue();
        }
        int number = attributes.size();
        attributes.put(attribute, Integer.valueOf(number));
        StringBuilder to = writtenAttributes;
        to.append('[').append(expressions.size()).append(',');
        expressions.add(attribute);
        PlanQuestions.string(to, attribute.name()).append(',').append(word(attribute.dataType().json()));
        to.append(',').append(attribute.nullable()).append(',').append(attribute.exprId().id());
        to.append(',').append(word(attribute.exprId().jvmId().toString()));
        to.append(',').append(attribute.semanticHash()).append(',');
        PlanQuestions.string(to, package$.MODULE$.toPrettySQL(attribute, true)).append("],");
        return number;
    }

    /** Write the fields of an expression that is a case class, in the form of Catalyst's JSON. */
    private void fields(Expression tree) {
        Product product = (Product) tree;
        for (int n = 0; n < product.productArity(); n++) {
            Object value = product.productElement(n);
            if (tree instanceof Literal && n == 0 && value != null) {
                value = literalText((Literal) tree);
            } else if (value instanceof scala.Some) {
                value = ((scala.Some) value).get();
            }
            if (!isPlain(value)) {
                continue;
            }
            comma();
            PlanQuestions.string(out, PlanQuestions.fieldName(product, n)).append(':');
            plain(value);
        }
        if (tree instanceof Alias) {
            comma();
            out.append("\"exprId\":");
            plain(((Alias) tree).exprId());
        }
    }

    /** Return a value as Catalyst's JSON has it: dates and times as they are read. */
    private static String literalText(Literal literal) {
        boolean shown = literal.value() instanceof Integer && literal.dataType() instanceof DateType
            || literal.value() instanceof Long && literal.dataType() instanceof TimestampType;
        return shown ? literal.toString() : literal.value().toString();
    }

    private static boolean isPlain(Object value) {
        return value == null || value instanceof Boolean || value instanceof Integer
            || value instanceof Long || value instanceof Short || value instanceof Byte
            || value instanceof String || value instanceof DataType || value instanceof ExprId;
    }

    private void plain(Object value) {
        if (value instanceof String) {
            PlanQuestions.string(out, (String) value);
        } else if (value instanceof DataType) {
            out.append(((DataType) value).json());
        } else if (value instanceof ExprId) {
            out.append("{\"id\":").append(((ExprId) value).id()).append(",\"jvmId\":");
            PlanQuestions.string(out, ((ExprId) value).jvmId().toString()).append('}');
        } else {
            out.append(String.valueOf(value));
        }
    }

    /** Write what is asked about expressions beyond their fields. */
    private void told(Expression tree) {
        if (tree.resolved()) {
            comma();
            out.append("\"type\":").append(word(tree.dataType().json()));
        }
        if (tree.containsPattern(TreePattern.PYTHON_UDF())) {
            comma();
            out.append("\"calls\":true");
        }
        if (tree.containsPattern(TreePattern.PLAN_EXPRESSION())) {
            comma();
            out.append("\"plans\":true");
        }
        if (!tree.deterministic()) {
            comma();
            out.append("\"deterministic\":false");
        }
        if (shown.containsKey(tree)) {
            comma();
            out.append("\"shown\":");
            PlanQuestions.string(out, package$.MODULE$.toPrettySQL(tree, true));
        }
        if (tree instanceof Cast) {
            Cast cast = (Cast) tree;
            comma();
            out.append("\"mode\":\"").append(cast.evalMode()).append("\",\"always\":");
            out.append(Cast.canUpCast(cast.child().dataType(), cast.dataType()));
        } else if (tree instanceof BinaryArithmetic) {
            comma();
            out.append("\"mode\":\"").append(((BinaryArithmetic) tree).evalMode()).append('"');
        } else if (tree instanceof Like) {
            comma();
            out.append("\"escape\":");
            PlanQuestions.string(out, String.valueOf(((Like) tree).escapeChar()));
        } else if (tree instanceof PythonUDF) {
            String known = PlanQuestions.pickleName(((PythonUDF) tree).func());
            if (known != null) {
                comma();
                out.append("\"pickle\":");
                PlanQuestions.string(out, known);
            }
        } else if (tree instanceof Literal && ((Literal) tree).value() instanceof Long) {
            comma();
            out.append("\"value\":").append(((Literal) tree).value());
        }
    }

    // -- JSON --------------------------------------------------------------------------------

    private int word(String text) {
        Object known = words.get(text);
        if (known == null) {
            known = Integer.valueOf(words.size());
            words.put(text, known);
        }
        return ((Integer) known).intValue();
    }

    private void comma() {
        if (out.charAt(out.length() - 1) != '{') {
            out.append(',');
        }
    }

    private StringBuilder close(char bracket) {
        if (out.charAt(out.length() - 1) == ',') {
            out.setLength(out.length() - 1);
        }
        return out.append(bracket);
    }
}
