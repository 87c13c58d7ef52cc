package eddyline.catalyst;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import scala.Product;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;

/**
 * Answers in one text what would take a crossing for each element of a sequence.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class PlanQuestions {
    /** Which of five things are anywhere in a plan, subqueries included. */
    public static int patterns(LogicalPlan plan) {
        return (plan.containsPattern(TreePattern.PYTHON_UDF()) ? 1 : 0)
            + (plan.containsPattern(TreePattern.JOIN()) ? 2 : 0)
            + (plan.containsPattern(TreePattern.LEFT_SEMI_OR_ANTI_JOIN()) ? 4 : 0)
            + (plan.containsPattern(TreePattern.PLAN_EXPRESSION()) ? 8 : 0)
            + (plan.containsPattern(TreePattern.LIMIT()) ? 16 : 0);
    }

    /**
     * What is asked about each of some plans before they are joined; see tables.py.
     *
     * @param held node names of leaves whose rows are at hand
     * @param sameTwice as of `unrepeatable`
     * @param expected as of `dropsRows`
     * @param files as of `parquetRows`
     */
    public static String facts(ArrayList plans, ArrayList held, ArrayList sameTwice, ArrayList expected, int files) {
        StringBuilder found = new StringBuilder("[");
        for (int n = 0; n < plans.size(); n++) {
            LogicalPlan plan = (LogicalPlan) plans.get(n);
            found.append('[').append(patterns(plan)).append(',').append(sizeInBytes(plan));
            found.append(',').append(parquetRows(plan, files)).append(',');
            text(found, tableName(plan)).append(',');
            text(found, unrepeatable(plan, sameTwice)).append(',').append(dropsRows(plan, expected));
            found.append(',').append(isScan(plan, held, false)).append(',').append(isScan(plan, held, true)).append("],");
        }
        return closed(found).toString();
    }

    /** Spark's estimate of a plan's size, which has no bound, as far as a long holds it. */
    private static long sizeInBytes(LogicalPlan plan) {
        scala.math.BigInt size = plan.stats().sizeInBytes();
        return size.isValidLong() ? size.toLong() : Long.MAX_VALUE;
    }

    private static StringBuilder text(StringBuilder to, String text) {
        return text == null ? to.append("null") : string(to, text);
    }

    /** Whether a plan reads files or what is held, with filters, projections, and semijoins if these count. */
    private static boolean isScan(LogicalPlan plan, ArrayList held, boolean reduced) {
        LogicalPlan top = plan;
        while (top instanceof Filter || top instanceof Project || (reduced && isSemijoin(top))) {
            top = (LogicalPlan) top.children().apply(0);
        }
        boolean kept = top instanceof LogicalRelation
            ? ((LogicalRelation) top).relation() instanceof HadoopFsRelation
            : held.contains(top.nodeName().split(" ")[0]);
        return kept && !plan.containsPattern(TreePattern.PYTHON_UDF());
    }

    /**
     * Which node may give other rows the second time it is read; null if none does.
     *
     * @param sameTwice simple names of the nodes that give the same rows whenever their children do
     */
    public static String unrepeatable(LogicalPlan plan, ArrayList sameTwice) {
        if (!plan.deterministic()) {
            return "something not deterministic";
        }
        if (plan.containsPattern(TreePattern.PYTHON_UDF())) {
            return "a Python function";
        }
        if (plan.containsPattern(TreePattern.PLAN_EXPRESSION())) {
            return "a subquery";
        }
        if (plan instanceof InMemoryRelation) {
            return unrepeatable(cached((InMemoryRelation) plan), sameTwice);
        }
        if (plan instanceof LogicalRelation) {
            return ((LogicalRelation) plan).relation() instanceof HadoopFsRelation ? null : "no file";
        }
        String name = plan.getClass().getSimpleName();
        if (!sameTwice.contains(name)) {
            return name;
        }
        if (plan instanceof Aggregate && addsFractions(plan)) {
            return "a sum of floating point numbers";
        }
        String found = null;
        Iterator each = plan.children().iterator();
        while (found == null && each.hasNext()) {
            found = unrepeatable((LogicalPlan) each.next(), sameTwice);
        }
        return found;
    }

    /** The name of a field of a case class. */
    public static String fieldName(Product product, int n) {
        return product.productElementName(n);
    }

    /** The plan whose rows a relation keeps. */
    public static LogicalPlan cached(InMemoryRelation relation) {
        return relation.cacheBuilder().logicalPlan();
    }

    private static boolean addsFractions(LogicalPlan plan) {
        Iterator each = plan.output().iterator();
        while (each.hasNext()) {
            String type = ((Expression) each.next()).dataType().typeName();
            if (type.equals("float") || type.equals("double")) {
                return true;
            }
        }
        return false;
    }

    /**
     * Whether a join or a condition in a plan says that rows are dropped.
     *
     * @param expected simple names of the expressions that say nothing of it
     */
    public static boolean dropsRows(LogicalPlan plan, ArrayList expected) {
        if (plan instanceof Join || (plan instanceof Filter && saysMore(((Filter) plan).condition(), expected))) {
            return true;
        }
        Iterator each = plan.children().iterator();
        while (each.hasNext()) {
            if (dropsRows((LogicalPlan) each.next(), expected)) {
                return true;
            }
        }
        return false;
    }

    private static boolean saysMore(Expression condition, ArrayList expected) {
        if (condition instanceof And) {
            return saysMore(((And) condition).left(), expected) || saysMore(((And) condition).right(), expected);
        }
        return !expected.contains(condition.getClass().getSimpleName());
    }

    /** The leaves of a plan to whose columns in its output the analyzer can give no new identities. */
    public static ArrayList fixedLeaves(LogicalPlan plan) {
        ArrayList found = new ArrayList();
        Iterator each = plan.collectLeaves().iterator();
        while (each.hasNext()) {
            LogicalPlan leaf = (LogicalPlan) each.next();
            if (!(leaf instanceof MultiInstanceRelation) && leaf.outputSet().intersect(plan.outputSet()).nonEmpty()) {
                found.add(leaf);
            }
        }
        return found;
    }

    /** The numbers in the identities of a plan's output. */
    public static String outputNumbers(LogicalPlan plan) {
        StringBuilder found = new StringBuilder();
        Iterator each = plan.output().iterator();
        while (each.hasNext()) {
            found.append(found.length() == 0 ? "" : ",");
            found.append(((NamedExpression) each.next()).exprId().id());
        }
        return found.toString();
    }

    /** The numbers in the identities of the attributes that the top node's own expressions look at. */
    public static String referenceNumbers(LogicalPlan plan) {
        StringBuilder found = new StringBuilder();
        Iterator each = plan.references().iterator();
        while (each.hasNext()) {
            found.append(found.length() == 0 ? "" : ",");
            found.append(((NamedExpression) each.next()).exprId().id());
        }
        return found.toString();
    }

    /** The Python functions in the expressions of the top node, outer ones first. */
    public static ArrayList pythonFunctions(LogicalPlan plan) {
        ArrayList found = new ArrayList();
        gather(plan.expressions(), found);
        return found;
    }

    /** Whether a node that evaluates Python functions for rows has one of another name, subqueries included. */
    public static boolean evaluatesOthers(LogicalPlan plan, String beginning) {
        if (!plan.containsPattern(TreePattern.PYTHON_UDF())) {
            return false;
        }
        if (plan instanceof BaseEvalPython) {
            Iterator each = ((BaseEvalPython) plan).udfs().iterator();
            while (each.hasNext()) {
                if (!((PythonUDF) each.next()).name().startsWith(beginning)) {
                    return true;
                }
            }
        }
        return anyEvaluatesOthers(plan.children(), beginning) || anyEvaluatesOthers(plan.subqueries(), beginning);
    }

    private static boolean anyEvaluatesOthers(scala.collection.Seq plans, String beginning) {
        Iterator each = plans.iterator();
        while (each.hasNext()) {
            if (evaluatesOthers((LogicalPlan) each.next(), beginning)) {
                return true;
            }
        }
        return false;
    }

    private static void gather(scala.collection.Seq trees, ArrayList found) {
        Iterator each = trees.iterator();
        while (each.hasNext()) {
            Expression tree = (Expression) each.next();
            if (tree instanceof PythonUDF) {
                found.add(tree);
            }
            if (tree.containsPattern(TreePattern.PYTHON_UDF())) {
                gather(tree.children(), found);
            }
        }
    }

    /** Python functions: of each its pickle in Base64, its files and its broadcast variables. */
    public static String functions(scala.collection.Seq asked) {
        StringBuilder found = new StringBuilder("[");
        Iterator each = asked.iterator();
        while (each.hasNext()) {
            PythonFunction function = ((PythonUDF) each.next()).func();
            byte[] command = (byte[]) function.command().toArray(ClassTag$.MODULE$.Byte());
            found.append("[\"").append(Base64.getEncoder().encodeToString(command)).append("\",");
            string(found, function.pythonIncludes().toString()).append(',');
            string(found, function.broadcastVars().toString()).append("],");
        }
        return closed(found).toString();
    }

    /** Bytes of a function up to which it has a name: to read them takes 1 ns a byte. */
    private static final int NAMED = 100000;

    /**
     * A name for what Python fetches of a function, by which it is known where it was fetched before; null for a large
     * one. Two numbers of 64 bits that are made in different ways tell functions apart.
     */
    public static String pickleName(PythonFunction function) {
        if (function.command().length() > NAMED) {
            return null;
        }
        byte[] command = (byte[]) function.command().toArray(ClassTag$.MODULE$.Byte());
        byte[] around = (function.pythonIncludes() + " " + function.broadcastVars()).getBytes(StandardCharsets.UTF_8);
        return pickleName(named(named(new long[] {command.length, 0xcbf29ce484222325L}, command), around));
    }

    private static String pickleName(long[] numbers) {
        return numbers[0] + " " + numbers[1];
    }

    private static long[] named(long[] numbers, byte[] bytes) {
        for (int n = 0; n < bytes.length; n++) {
            numbers[0] = numbers[0] * 6364136223846793005L + bytes[n] + 1442695040888963407L;
            numbers[1] = (numbers[1] ^ (bytes[n] & 0xff)) * 0x100000001b3L;
        }
        return numbers;
    }

    /** Footers that are known: some kilobytes. */
    private static final int MOST_FOOTERS = 10000;

    /** Rows of files by their names, lengths and times: to open a file takes longer than all else here. */
    private static final ConcurrentHashMap FOOTERS = new ConcurrentHashMap();

    /** The rows of a table of Parquet files by the footers of the first ones; -1 if that tells nothing. */
    public static long parquetRows(LogicalPlan plan, int files) {
        scala.collection.Seq leaves = plan.collectLeaves();
        if (leaves.size() != 1 || !(leaves.apply(0) instanceof LogicalRelation)) {
            return -1;
        }
        LogicalRelation leaf = (LogicalRelation) leaves.apply(0);
        if (!(leaf.relation() instanceof HadoopFsRelation)) {
            return -1;
        }
        HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
        if (!(relation.fileFormat() instanceof ParquetFileFormat) || !(relation.location() instanceof PartitioningAwareFileIndex)) {
            return -1;
        }
        Iterator listed = ((PartitioningAwareFileIndex) relation.location()).allFiles().iterator();
        Configuration settings = relation.sparkSession().sessionState().newHadoopConf();
        long rows = 0;
        long size = 0;
        try {
            for (int n = 0; n < files && listed.hasNext(); n++) {
                FileStatus file = (FileStatus) listed.next();
                rows += rowsOf(file, settings);
                size += file.getLen();
            }
        } catch (Exception unreadable) { // not there any more, or no such file: the query will say so
            return -1;
        }
        if (size == 0) {
            return -1;
        }
        double whole = leaf.stats().sizeInBytes().doubleValue();
        return (long) (whole / size * rows);
    }

    private static long rowsOf(FileStatus file, Configuration settings) throws Exception {
        String key = file.getPath() + " " + file.getLen() + " " + file.getModificationTime();
        Long known = (Long) FOOTERS.get(key);
        if (known == null) {
            ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromStatus(file, settings));
            try {
                known = Long.valueOf(reader.getRecordCount());
            } finally {
                reader.close();
            }
            if (FOOTERS.size() >= MOST_FOOTERS) {
                FOOTERS.clear();
            }
            FOOTERS.put(key, known);
        }
        return known.longValue();
    }

    /** Settings of a session, null for one that is not set. */
    public static String settings(SparkSession session, ArrayList keys) {
        StringBuilder found = new StringBuilder("[");
        for (int n = 0; n < keys.size(); n++) {
            String value = session.conf().get((String) keys.get(n), (String) null);
            if (value == null) {
                found.append("null,");
            } else {
                string(found, value).append(',');
            }
        }
        return closed(found).toString();
    }

    /** Not by its name in SQL: what EXISTS under OR becomes has none, and raises. */
    private static boolean isSemijoin(LogicalPlan plan) {
        return plan instanceof Join && ((Join) plan).joinType().toString().equals("LeftSemi");
    }

    /** The name of the only table that a plan reads, but for those of semijoins; null for none. */
    public static String tableName(LogicalPlan plan) {
        LogicalPlan top = plan;
        while (top instanceof Filter || top instanceof Project || isSemijoin(top)) {
            top = (LogicalPlan) top.children().apply(0);
        }
        scala.collection.Seq leaves = top.collectLeaves();
        if (leaves.size() != 1 || !(leaves.apply(0) instanceof LogicalRelation)) {
            return null;
        }
        LogicalRelation leaf = (LogicalRelation) leaves.apply(0);
        if (leaf.catalogTable().isDefined()) {
            return ((CatalogTable) leaf.catalogTable().get()).identifier().table();
        }
        if (leaf.relation() instanceof HadoopFsRelation) {
            scala.collection.Seq paths = ((HadoopFsRelation) leaf.relation()).location().rootPaths();
            if (paths.size() == 1) {
                String name = ((Path) paths.apply(0)).getName();
                return name.indexOf('.') < 0 ? name : name.substring(0, name.indexOf('.'));
            }
        }
        return null;
    }

    /** Close a list, after whose last element a comma may stand. */
    public static StringBuilder closed(StringBuilder list) {
        if (list.charAt(list.length() - 1) == ',') {
            list.setLength(list.length() - 1);
        }
        return list.append(']');
    }

    /** Write a text as JSON in ASCII. */
    public static StringBuilder string(StringBuilder to, String text) {
        to.append('"');
        for (int n = 0; n < text.length(); n++) {
            char each = text.charAt(n);
            if (each == '"' || each == '\\') {
                to.append('\\').append(each);
            } else if (each < ' ' || each > '~') {
                to.append("\\u").append(Integer.toHexString(each + 0x10000).substring(1));
            } else {
                to.append(each);
            }
        }
        return to.append('"');
    }
}
