package eddyline.catalyst;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.sources.BaseRelation;
import scala.Option;
import scala.Product;
import scala.Tuple2;
import scala.collection.Map;
import scala.collection.Seq;
import scala.collection.Set;
import scala.runtime.AbstractFunction1;

/**
 * What became of the latest plans, so that an equal one is not rewritten again.
 *
 * Two plans are equal if they have the same nodes and expressions in the same places, over leaves with the same data
 * (the same files of the same age, the same cached rows), under the same settings; only the identities of columns may
 * differ, as they do each time a query is analyzed. What became of the first is then what becomes of the second, in
 * terms of its leaves and columns. Finding that out takes time in proportion to the nodes of a plan: 0.4 ms on average
 * for the queries of `python -m bench short`, whose rewriting takes some 15.
 *
 * Plans are kept without their leaves, so that no data outlive their DataFrames.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class KnownRewritings {
    /** Plans that are kept, the latest ones, and the bytes of all functions in these and in what became of them. */
    private static final int PLANS = 128;
    private static final long BYTES = 1L << 25;

    /** Rows of a relation in the driver's memory, and files of a table, up to which they are compared. */
    private static final int ROWS = 100;
    private static final int FILES = 10000;

    /**
     * A plan is rewritten again when it comes for the second time, as what its functions cost and keep is known by then,
     * and whenever it has come so many times as often as then.
     */
    private static final int AGAIN = 2;
    private static final int RARER = 8;

    private final ArrayList kept = new ArrayList();  // the latest last
    private final AtomicLong found = new AtomicLong();
    private long bytes;

    /** Return what becomes of a plan by a rule, if it became of an equal one before; else null. */
    public LogicalPlan of(Object rule, LogicalPlan plan, Map settings) {
        Object[] latest;
        synchronized (this) {
            latest = kept.toArray();
        }
        int hash = hash(rule, plan, settings);
        for (int n = latest.length - 1; n >= 0; n--) {
            Kept known = (Kept) latest[n];
            if (known.hash != hash || !known.isBy(rule, settings)) {
                continue;
            }
            SamePlan same = new SamePlan(known);
            if (same.is(plan)) {
                if (!touch(known)) {
                    return null;
                }
                found.incrementAndGet();
                return known.unchanged ? plan : new Renewal(known, same).of(known.made);
            }
        }
        return null;
    }

    /** Keep what became of a plan; nothing where something in it cannot be compared. */
    public void keep(Object rule, LogicalPlan given, LogicalPlan made, Map settings) {
        Kept known = Kept.of(rule, given, made, settings);
        if (known == null || known.bytes > BYTES / 4) {
            return;
        }
        Object[] latest;
        synchronized (this) {
            latest = kept.toArray();
        }
        Kept former = null;
        for (int n = 0; n < latest.length; n++) {
            Kept other = (Kept) latest[n];
            if (other.hash == known.hash && other.isBy(rule, settings) && new SamePlan(other).is(given)) {
                former = other;
            }
        }
        synchronized (this) {
            if (former != null && kept.remove(former)) {
                bytes -= former.bytes;
                known.uses = former.uses;
                known.wanted = former.wanted;
            }
            kept.add(known);
            bytes += known.bytes;
            while (kept.size() > PLANS || bytes > BYTES) {
                bytes -= ((Kept) kept.remove(0)).bytes;
            }
        }
    }

    /** Keep nothing. */
    public synchronized void clear() {
        kept.clear();
        bytes = 0;
    }

    /** Return how many plans are kept, the bytes of their functions, and how often one was found so far. */
    public synchronized long[] counts() {
        return new long[] {kept.size(), bytes, found.get()};
    }

    /** Count a use; whether it is none at which the plan is to be rewritten again. */
    private synchronized boolean touch(Kept known) {
        if (kept.remove(known)) {
            kept.add(known);
        }
        if (++known.uses < known.wanted) {
            return true;
        }
        known.wanted *= RARER;
        return false;
    }

    private static int hash(Object rule, LogicalPlan plan, Map settings) {
        return (System.identityHashCode(rule) * 31 + settings.hashCode()) * 31 + shape(plan);
    }

    private static int shape(LogicalPlan plan) {
        int shape = plan.getClass().hashCode();
        for (int n = 0; n < plan.children().length(); n++) {
            shape = shape * 31 + shape((LogicalPlan) plan.children().apply(n));
        }
        return shape;
    }

    /** A plan, and what became of it, with stand-ins for the leaves of the first. */
    private static final class Kept {
        final WeakReference rule;
        final Map settings;
        final int hash;
        final IdentityHashMap standIns = new IdentityHashMap();  // from each to its number
        final ArrayList contents = new ArrayList();
        LogicalPlan given;
        LogicalPlan made;
        boolean unchanged;
        long bytes;
        int uses = 1;
        int wanted = AGAIN;  // the use at which it is to be made again

        private Kept(Object rule, Map settings, int hash) {
            this.rule = new WeakReference(rule);
            this.settings = settings;
            this.hash = hash;
        }

        boolean isBy(Object other, Map others) {
            return rule.get() == other && settings.equals(others);
        }

        /** Null where a leaf is none whose data can be compared, or a column none that can be renamed. */
        static Kept of(Object rule, LogicalPlan given, LogicalPlan made, Map settings) {
            Kept known = new Kept(rule, settings, hash(rule, given, settings));
            StandingIn standing = new StandingIn(known);
            known.given = standing.of(given, true);
            standing.failed = standing.failed || standing.shows(given.output());
            known.unchanged = made == given;
            known.made = known.unchanged || standing.failed ? null : standing.of(made, false);
            known.bytes = standing.bytes;
            return standing.failed ? null : known;
        }
    }

    /** Makes a plan of another, node by node, subqueries included. */
    private abstract static class Rebuilding {
        LogicalPlan of(LogicalPlan plan) {
            if (plan.children().isEmpty()) {
                LogicalPlan leaf = leaf(plan);
                if (leaf != null) {
                    return leaf;
                }
            }
            LogicalPlan over = plan;
            ArrayList children = new ArrayList();
            boolean same = true;
            for (int n = 0; n < plan.children().length(); n++) {
                LogicalPlan child = (LogicalPlan) plan.children().apply(n);
                LogicalPlan other = of(child);
                same = same && child == other;
                children.add(other);
            }
            if (!same) {
                over = (LogicalPlan) plan.withNewChildren(PythonUtils.toSeq(children).toIndexedSeq());
            }
            seen(plan);
            return (LogicalPlan) over.mapExpressions(new OfExpressions(this));
        }

        Expression of(Expression expression) {
            ArrayList children = new ArrayList();
            boolean same = true;
            for (int n = 0; n < expression.children().length(); n++) {
                Expression child = (Expression) expression.children().apply(n);
                Expression other = of(child);
                same = same && child == other;
                children.add(other);
            }
            Expression over = same
                ? expression
                : (Expression) expression.withNewChildren(PythonUtils.toSeq(children).toIndexedSeq());
            if (over instanceof PlanExpression && ((PlanExpression) over).plan() instanceof LogicalPlan) {
                LogicalPlan inner = (LogicalPlan) ((PlanExpression) over).plan();
                LogicalPlan other = of(inner);
                over = inner == other ? over : (Expression) ((PlanExpression) over).withNewPlan(other);
            }
            return named(over);
        }

        /** Return what stands in place of a leaf; null for itself, with other expressions. */
        abstract LogicalPlan leaf(LogicalPlan leaf);

        /** Return what stands in place of an expression that has its children already. */
        abstract Expression named(Expression expression);

        /** Take a look at a node. */
        void seen(LogicalPlan plan) {
        }
    }

    private static final class OfExpressions extends AbstractFunction1 {
        private final Rebuilding rebuilding;

        OfExpressions(Rebuilding rebuilding) {
            this.rebuilding = rebuilding;
        }

        public Object apply(Object expression) {
            return rebuilding.of((Expression) expression);
        }
    }

    /** Puts stand-ins in place of leaves: in the plan that was given, then in what became of it. */
    private static final class StandingIn extends Rebuilding {
        private final Kept known;
        private final IdentityHashMap standIns = new IdentityHashMap();  // from each leaf to its own
        private final HashSet existences = new HashSet();  // columns that say whether there is a match
        private boolean given;
        private boolean failed;
        private long bytes;

        StandingIn(Kept known) {
            this.known = known;
        }

        LogicalPlan of(LogicalPlan plan, boolean given) {
            this.given = given;
            return of(plan);
        }

        LogicalPlan leaf(LogicalPlan leaf) {
            LogicalPlan standIn = (LogicalPlan) standIns.get(leaf);
            if (standIn != null || failed) {
                return standIn == null ? leaf : standIn;
            }
            if (!given) {  // one that rewriting has made: as it is, if it holds next to nothing
                failed = !(leaf instanceof OneRowRelation || leaf instanceof Range || isSmall(leaf));
                return failed ? leaf : null;
            }
            Contents contents = leaf.isStreaming() ? null : Contents.of(leaf);
            if (contents == null) {
                failed = true;
                return leaf;
            }
            ArrayList none = new ArrayList();
            standIn = new LocalRelation(leaf.output(), PythonUtils.toSeq(none), false, Option.empty());
            standIns.put(leaf, standIn);
            known.standIns.put(standIn, Integer.valueOf(known.contents.size()));
            known.contents.add(contents);
            return standIn;
        }

        Expression named(Expression expression) {
            if (expression instanceof PythonUDF) {
                PythonFunction function = ((PythonUDF) expression).func();
                bytes += function.command().length();
                failed = failed || !function.broadcastVars().isEmpty();  // whose data would outlive their users
            }
            return expression;
        }

        void seen(LogicalPlan plan) {
            if (plan instanceof Join && ((Join) plan).joinType() instanceof ExistenceJoin) {
                existences.add(((ExistenceJoin) ((Join) plan).joinType()).exists().exprId());
            }
        }

        /** Whether some of these are columns that no expression of a node makes, which cannot be renamed. */
        boolean shows(Seq output) {
            for (int n = 0; n < output.length(); n++) {
                if (existences.contains(((Attribute) output.apply(n)).exprId())) {
                    return true;
                }
            }
            return false;
        }
    }

    /** Puts the leaves and columns of another, equal plan in place of those of a plan that is kept. */
    private static final class Renewal extends Rebuilding {
        private final IdentityHashMap standIns;
        private final SamePlan same;

        Renewal(Kept known, SamePlan same) {
            this.standIns = known.standIns;
            this.same = same;
        }

        LogicalPlan leaf(LogicalPlan leaf) {
            Integer number = (Integer) standIns.get(leaf);
            return number == null ? null : same.leaves[number.intValue()];
        }

        Expression named(Expression expression) {
            if (expression instanceof AttributeReference) {
                AttributeReference known = (AttributeReference) expression;
                ExprId other = same.other(known.exprId());
                return other == null ? known : known.withExprId(other);
            }
            if (expression instanceof Alias) {
                Alias known = (Alias) expression;
                ExprId other = same.other(known.exprId());
                return other == null ? known : new Alias(
                    known.child(), known.name(), other, known.qualifier(), known.explicitMetadata(),
                    known.nonInheritableMetadataKeys()
                );
            }
            return expression;
        }
    }

    /** Compares a plan that is kept with another one, and takes down which columns and leaves are which. */
    private static final class SamePlan {
        final LogicalPlan[] leaves;
        private final Kept known;
        private final HashMap others = new HashMap();
        private final HashMap former = new HashMap();
        private final HashSet outside = new HashSet();

        SamePlan(Kept known) {
            this.known = known;
            this.leaves = new LogicalPlan[known.contents.size()];
        }

        /**
         * The identity of a column of a leaf or of the whole in the other plan; null where it is the same.
         *
         * What becomes of columns between these is nobody else's business.
         */
        ExprId other(ExprId identity) {
            ExprId other = outside.contains(identity) ? (ExprId) others.get(identity) : null;
            return identity.equals(other) ? null : other;
        }

        /** Whether the plan that is kept is the same as another one. */
        boolean is(LogicalPlan other) {
            return plans(known.given, other) && columns(known.given.output(), other.output());
        }

        private boolean columns(Seq ones, Seq others) {
            for (int n = 0; n < ones.length(); n++) {
                outside.add(((Attribute) ones.apply(n)).exprId());
            }
            return values(ones, others);
        }

        private boolean plans(LogicalPlan one, LogicalPlan other) {
            Integer number = (Integer) known.standIns.get(one);
            if (number == null) {
                return one.getClass() == other.getClass() && elements((Product) one, (Product) other);
            }
            int place = number.intValue();
            if (leaves[place] != null) {  // one leaf in two places
                return leaves[place] == other;
            }
            leaves[place] = other;
            return ((Contents) known.contents.get(place)).areThoseOf(other) && columns(one.output(), other.output());
        }

        private boolean expressions(Expression one, Expression other) {
            if (one.getClass() != other.getClass()) {
                return false;
            }
            if (one instanceof Literal) {
                return one.equals(other) && look(((Literal) one).value(), ((Literal) other).value());
            }
            if (one instanceof Attribute) {
                Attribute known = (Attribute) one;
                Attribute compared = (Attribute) other;
                return identities(known.exprId(), compared.exprId()) && known.name().equals(compared.name())
                    && known.dataType().equals(compared.dataType()) && known.nullable() == compared.nullable()
                    && known.metadata().equals(compared.metadata());
            }
            if (one instanceof Alias) {
                Alias known = (Alias) one;
                Alias compared = (Alias) other;
                return identities(known.exprId(), compared.exprId())
                    && known.explicitMetadata().equals(compared.explicitMetadata())
                    && known.nonInheritableMetadataKeys().equals(compared.nonInheritableMetadataKeys())
                    && elements((Product) one, (Product) other);
            }
            return elements((Product) one, (Product) other);
        }

        private boolean identities(ExprId one, ExprId other) {
            Object before = others.put(one, other);
            if (before != null) {
                return before.equals(other);
            }
            return former.put(other, one) == null;
        }

        private boolean elements(Product one, Product other) {
            int arity = one.productArity();
            for (int n = 0; n < arity; n++) {
                if (!values(one.productElement(n), other.productElement(n))) {
                    return false;
                }
            }
            return arity == other.productArity();
        }

        private boolean values(Object one, Object other) {
            if (one instanceof LogicalPlan) {
                return other instanceof LogicalPlan && plans((LogicalPlan) one, (LogicalPlan) other);
            }
            if (one instanceof Expression) {
                return other instanceof Expression && expressions((Expression) one, (Expression) other);
            }
            if (one instanceof ExprId) {
                return other instanceof ExprId && identities((ExprId) one, (ExprId) other);
            }
            if (one instanceof Seq && !((Seq) one).isEmpty() && isOfPlans(((Seq) one).apply(0))) {
                Seq ones = (Seq) one;
                if (!(other instanceof Seq) || ones.length() != ((Seq) other).length()) {
                    return false;
                }
                for (int n = 0; n < ones.length(); n++) {
                    if (!values(ones.apply(n), ((Seq) other).apply(n))) {
                        return false;
                    }
                }
                return true;
            }
            if (one instanceof Option && other instanceof Option && ((Option) one).isDefined()) {
                return ((Option) other).isDefined() && values(((Option) one).get(), ((Option) other).get());
            }
            if (one instanceof Tuple2 && other instanceof Tuple2 || one instanceof ExistenceJoin && other instanceof ExistenceJoin) {
                return elements((Product) one, (Product) other);
            }
            if (one instanceof AtomicReference) {  // the value of a lambda's variable, while it runs
                return other instanceof AtomicReference;
            }
            return one == null ? other == null : one.equals(other) && (!(one instanceof Set) || look(one, other));
        }

        private static boolean isOfPlans(Object value) {
            return value instanceof TreeNode || value instanceof ExprId || value instanceof Seq || value instanceof Option
                || value instanceof Tuple2;
        }
    }

    /** What tells whether a leaf has the data that another one had. */
    private static final class Contents {
        private final Class kind;
        private final Object size;
        private final Object known;  // compared by `equals`
        private final WeakReference held;  // compared as the very same

        /** That of Fowler, Noll and Vo for 64 bits: the files of a table are told by one number. */
        private static final long PRIME = 0x100000001b3L;

        private Contents(LogicalPlan leaf, Object known, Object held) {
            this.kind = leaf.getClass();
            this.size = leaf.stats().sizeInBytes();
            this.known = known;
            this.held = held == null ? null : new WeakReference(held);
        }

        /** Null for a leaf whose data nobody can compare. */
        static Contents of(LogicalPlan leaf) {
            if (leaf instanceof OneRowRelation) {
                return new Contents(leaf, "", null);
            }
            if (leaf instanceof Range) {
                Range range = (Range) leaf;
                return new Contents(leaf, range.start() + " " + range.end() + " " + range.step() + " " + range.numSlices(), null);
            }
            if (leaf instanceof LocalRelation) {
                Seq rows = ((LocalRelation) leaf).data();
                return isSmall(leaf) ? new Contents(leaf, rows, null) : new Contents(leaf, null, rows);
            }
            if (leaf instanceof InMemoryRelation) {
                return new Contents(leaf, null, ((InMemoryRelation) leaf).cacheBuilder());
            }
            if (leaf instanceof LogicalRDD) {
                return new Contents(leaf, null, ((LogicalRDD) leaf).rdd());
            }
            if (leaf instanceof LogicalRelation) {
                return ofRelation(leaf, ((LogicalRelation) leaf).relation());
            }
            return null;
        }

        private static Contents ofRelation(LogicalPlan leaf, BaseRelation relation) {
            if (!(relation instanceof HadoopFsRelation)) {
                return new Contents(leaf, null, relation);
            }
            HadoopFsRelation files = (HadoopFsRelation) relation;
            if (!(files.location() instanceof PartitioningAwareFileIndex)) {
                return null;
            }
            Seq all = ((PartitioningAwareFileIndex) files.location()).allFiles();
            if (all.length() > FILES) {
                return null;
            }
            long hash = all.length();
            for (scala.collection.Iterator each = all.iterator(); each.hasNext();) {
                FileStatus file = (FileStatus) each.next();
                hash = hashed(hash, file.getPath().toString());
                hash = (hash * PRIME + file.getLen()) * PRIME + file.getModificationTime();
            }
            ArrayList parts = new ArrayList();
            parts.add(Long.valueOf(hash));
            parts.add(files.location().getClass());
            parts.add(files.location().rootPaths());
            parts.add(files.dataSchema());
            parts.add(files.partitionSchema());
            parts.add(files.bucketSpec());
            parts.add(files.fileFormat().getClass());
            parts.add(files.options());
            return new Contents(leaf, parts, null);
        }

        private static long hashed(long hash, String text) {
            for (int n = 0; n < text.length(); n++) {
                hash = hash * PRIME + text.charAt(n);
            }
            return hash;
        }

        boolean areThoseOf(LogicalPlan leaf) {
            if (leaf.getClass() != kind || leaf.isStreaming()) {
                return false;
            }
            Contents other = of(leaf);
            if (other == null || !size.equals(other.size)) {
                return false;
            }
            if (held != null) {
                Object mine = held.get();
                return mine != null && other.held != null && mine == other.held.get();
            }
            return known.equals(other.known) && (kind != LocalRelation.class || look(known, other.known));
        }
    }

    /** Whether equal values look equal, too: -0.0 equals 0.0, though functions may tell them apart. */
    private static boolean look(Object one, Object other) {
        return one instanceof byte[] || String.valueOf(one).equals(String.valueOf(other));
    }

    private static boolean isSmall(LogicalPlan leaf) {
        return leaf instanceof LocalRelation && leaf.children().isEmpty() && ((LocalRelation) leaf).data().length() <= ROWS;
    }
}
