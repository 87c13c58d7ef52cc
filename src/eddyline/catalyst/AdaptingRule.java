package eddyline.catalyst;

import java.util.ArrayList;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.function.BiFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.network.util.JavaUtils;
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
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.util.Utils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * The rule of a session's optimizer that has Python adapt what calls Python functions.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class AdaptingRule extends Rule {
    private static final Logger LOG = LoggerFactory.getLogger("eddyline");
    private static final ThreadLocal BUSY = new ThreadLocal();
    private static final TreeNodeTag SEEN = new TreeNodeTag("eddyline");

    /** Python's mark (see `PlanMaker`) on what becomes of equal plans as well. */
    private static final TreeNodeTag LASTS = new TreeNodeTag("eddyline.lasts");


    /** How long Python may take to rewrite a plan, and by default. */
    public static final String LIMIT = "spark.eddyline.rewriteTimeout";
    public static final String USUAL = "30s";

    /** Settings of a session: whether its plans are rewritten, and which joins are claimed. */
    private static final String ENABLED = "spark.eddyline.enabled";
    private static final String JOINS = "spark.eddyline.joins";

    /** What a session says where a program leaves rewriting to what it enables itself, not to a plug-in. */
    private static final String BY_PROGRAM = "program";

    /** What was set last as a limit and is none, which is said once. */
    private static volatile String refused = null;

    /** What became of plans; null for a rule that only tells of limits. */
    private volatile KnownRewritings known;

    private PythonSide side;
    private BiFunction rewrite;
    private boolean every;
    private String limited;
    private volatile boolean on = true;
    private boolean chosenBySession;

    /** Heed what sessions say about joins; what they say about other things is for Python to read. */
    public void heedSessions() {
        this.chosenBySession = true;
    }

    /**
     * Say what the rule does.
     *
     * @param side what asks Python
     * @param rewrite from a plan, and the identity of the session that runs it, to one with the same output
     * @param every whether to rewrite plans without Python functions too
     * @param limited whether to rewrite only plans with limits that call functions whose names begin so; null for all
     */
    public void be(PythonSide side, BiFunction rewrite, boolean every, String limited) {
        this.side = side;
        this.rewrite = rewrite;
        this.every = every;
        this.limited = limited;
        this.known = limited == null ? side.rewritings() : null;
    }

    /** Whether it adapts plans, and does not only tell of limits. */
    public boolean adapts() {
        return limited == null;
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
        if (!plan.containsPattern(TreePattern.PYTHON_UDF()) && !asksAboutEvery()
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
        // The session that runs the query: perhaps a copy, with other settings, as for a stream.
        SparkSession session = SparkSession.active();
        if (isOff(session)) {
            return plan;
        }
        Map settings = known == null ? null : session.sessionState().conf().getAllConfs();
        LogicalPlan found = known(plan, settings);
        if (found == null) {
            found = (LogicalPlan) side.ask(new Rewriting(rewrite, plan, session), limit(session));
            if (found == null) {  // Python has let go of it, or does not answer
                return plan;
            }
            if (found.getTagValue(LASTS).isDefined()) {
                found.unsetTagValue(LASTS);
                keep(plan, found, settings);
            }
        }
        found.setTagValue(SEEN, Boolean.TRUE);
        return found;
    }

    private boolean isOff(SparkSession session) {
        String enabled = session.sessionState().conf().getConfString(ENABLED, "true").trim();
        return enabled.equalsIgnoreCase("false") || chosenBySession && enabled.equalsIgnoreCase(BY_PROGRAM);
    }

    private boolean asksAboutEvery() {
        return every
            || chosenBySession && SQLConf.get().getConfString(JOINS, "auto").trim().equalsIgnoreCase("always");
    }

    /** What became of an equal plan; null where that is not known. */
    private LogicalPlan known(LogicalPlan plan, Map settings) {
        try {
            return known == null ? null : known.of(this, plan, settings);
        } catch (RuntimeException failed) {
            return unknown(failed);
        } catch (LinkageError failed) {  // another version of Spark than those that were tried
            return unknown(failed);
        }
    }

    private void keep(LogicalPlan plan, LogicalPlan found, Map settings) {
        try {
            if (known != null) {
                known.keep(this, plan, found, settings);
            }
        } catch (RuntimeException failed) {
            unknown(failed);
        } catch (LinkageError failed) {
            unknown(failed);
        }
    }

    /** From now on each plan is rewritten. */
    private LogicalPlan unknown(Throwable failed) {
        LOG.warn("Plans that are equal are rewritten each time, as they could not be compared", failed);
        known = null;
        return null;
    }

    private static long limit(SparkSession session) {
        return milliseconds(session.sessionState().conf().getConfString(LIMIT, USUAL));
    }

    /** Return a limit as it is set, in milliseconds; a number alone is in seconds. */
    public static long milliseconds(String set) {
        String limit = set.trim();
        try {
            boolean unit = !limit.isEmpty() && Character.isLetter(limit.charAt(limit.length() - 1));
            long found = JavaUtils.timeStringAsMs(unit ? limit : limit + "s");
            if (found > 0) {
                return found;
            }
        } catch (NumberFormatException noTime) {
            // As for a limit of no time.
        }
        if (!limit.equals(refused)) {
            refused = limit;
            LOG.warn("{} is {}, which is no time above zero: {} holds", LIMIT, limit, USUAL);
        }
        return JavaUtils.timeStringAsMs(USUAL);
    }

    /** The question to Python, with what the thread that asks it knows of the query. */
    private static final class Rewriting implements Callable {
        private final BiFunction rewrite;
        private final LogicalPlan plan;
        private final SparkSession session;
        private final Properties properties;
        private final ClassLoader loader = Thread.currentThread().getContextClassLoader();

        Rewriting(BiFunction rewrite, LogicalPlan plan, SparkSession session) {
            this.rewrite = rewrite;
            this.plan = plan;
            this.session = session;
            // Jobs that find out something for the plan belong to the group of the query.
            this.properties = Utils.cloneProperties(session.sparkContext().getLocalProperties());
        }

        public Object call() {
            SparkContext context = session.sparkContext();
            Option before = SparkSession.getActiveSession();  // of a thread that was asked something else
            BUSY.set(Boolean.TRUE);  // what is planned on the way stays as it is
            Thread.currentThread().setContextClassLoader(loader);
            context.setLocalProperties(properties);
            SparkSession.setActiveSession(session);
            try {
                return rewrite.apply(plan, session.sessionUUID());
            } finally {
                if (before.isDefined()) {
                    SparkSession.setActiveSession((SparkSession) before.get());
                } else {
                    SparkSession.clearActiveSession();
                }
                context.setLocalProperties(new Properties());
                BUSY.remove();
            }
        }
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
