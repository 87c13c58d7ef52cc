package eddyline.catalyst;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiFunction;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.EventLoggingListener;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.reflect.ClassTag$;

/**
 * Has Python report each action that is over, and posts the report as an event, which the event log keeps.
 *
 * It listens in the queue of the event log. So it hears of an action after the log has, no query waits for it, and
 * the queue is only closed when it has heard of everything: the last report is written before the log is.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class ReportPoster extends SparkListener {
    private static final Logger LOG = LoggerFactory.getLogger("eddyline");

    /** Reports that Python has not made yet; beyond them actions have none. */
    private static final int MOST = 64;

    /** Milliseconds that the end of an application waits for all of these. */
    private static final long PATIENCE = 2000;

    private final ConcurrentLinkedQueue asked = new ConcurrentLinkedQueue();
    private SparkContext context;
    private PythonSide side;
    private BiFunction report;
    private Pattern named;
    private boolean lost;

    /**
     * Begin, where the application has an event log; tell whether it has.
     *
     * @param report from the number of an action, and what its plan is like, to its report in JSON; null for none
     * @param named a pattern of what the names begin with of the functions that plans are told apart by
     */
    public boolean begin(SparkContext context, PythonSide side, BiFunction report, String named) {
        if (context.eventLogger().isEmpty()) {
            return false;
        }
        this.context = context;
        this.side = side;
        this.report = report;
        this.named = Pattern.compile(named);
        context.listenerBus().addToEventLogQueue(this);
        return true;
    }

    public void onOtherEvent(SparkListenerEvent event) {
        if (!(event instanceof SparkListenerSQLExecutionEnd)) {
            return;
        }
        while (!asked.isEmpty() && ((FutureTask) asked.peek()).isDone()) {
            write((FutureTask) asked.poll(), 0);
        }
        if (asked.size() < MOST) {
            SparkListenerSQLExecutionEnd end = (SparkListenerSQLExecutionEnd) event;
            asked.add(side.later(new Asking(end.executionId(), end.qe())));
        } else if (!lost) {
            lost = true;
            LOG.warn("Reports are missing in the event log, as Python does not make them in time");
        }
    }

    public void onApplicationEnd(SparkListenerApplicationEnd end) {
        long until = System.currentTimeMillis() + PATIENCE;
        while (!asked.isEmpty()) {
            write((FutureTask) asked.poll(), Math.max(until - System.currentTimeMillis(), 0));
        }
    }

    /** Wait until all actions that are over have their reports in the log, for a while. */
    public void settle() {
        try {
            context.listenerBus().waitUntilEmpty(PATIENCE);
            Object[] left = asked.toArray();
            for (int n = 0; n < left.length; n++) {
                ((FutureTask) left[n]).get(PATIENCE, TimeUnit.MILLISECONDS);
            }
        } catch (Exception unsettled) {
            LOG.debug("Reports may be missing in the event log", unsettled);
        }
    }

    /** Write a report that came too late to be posted; for the thread of the event log only. */
    private void write(FutureTask task, long milliseconds) {
        try {
            Object late = task.get(milliseconds, TimeUnit.MILLISECONDS);
            if (late != null) {
                ((EventLoggingListener) context.eventLogger().get()).onOtherEvent((RoutingReportEvent) late);
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        } catch (TimeoutException late) {
            task.cancel(false);
        } catch (ExecutionException failed) {
            LOG.debug("An action has no report", failed.getCause());
        } catch (CancellationException gone) {
            LOG.debug("An action has no report, as Python has gone", gone);
        }
    }

    /** The question to Python, in one of whose threads it is asked and the report is posted. */
    private final class Asking implements Callable {
        private final long action;
        private final QueryExecution execution;

        Asking(long action, QueryExecution execution) {
            this.action = action;
            this.execution = execution;
        }

        /** Return the report where nobody takes it any more: posts are dropped when a context has stopped. */
        public Object call() {
            Object made = report.apply(Long.valueOf(action), plan());
            if (made == null) {
                return null;
            }
            RoutingReportEvent event = new RoutingReportEvent(action, (String) made);
            if (context.isStopped()) {
                return event;
            }
            context.listenerBus().post(event);
            return null;
        }

        /**
         * Say what the plan is like, in words: the identity of the execution, whether there is a join, from which
         * Spark may have derived filters, and the digests of the functions in question, in the order of the plan.
         */
        private String plan() {
            String identity = Integer.toString(System.identityHashCode(execution));
            try {
                LogicalPlan plan = execution.optimizedPlan();
                String joins = plan.containsPattern(TreePattern.JOIN()) ? " join" : " alone";
                StringBuilder digests = new StringBuilder();
                functions(plan, digests);
                return identity + joins + digests;
            } catch (Throwable failed) {  // as where a query was never planned
                return identity + " join";
            }
        }
    }

    private void functions(LogicalPlan plan, StringBuilder digests) throws NoSuchAlgorithmException {
        if (plan.containsPattern(TreePattern.PYTHON_UDF())) {
            for (int n = 0; n < plan.expressions().length(); n++) {
                calls((Expression) plan.expressions().apply(n), digests);
            }
        }
        for (int n = 0; n < plan.children().length(); n++) {
            functions((LogicalPlan) plan.children().apply(n), digests);
        }
        for (int n = 0; n < plan.subqueries().length(); n++) {
            functions((LogicalPlan) plan.subqueries().apply(n), digests);
        }
        if (plan instanceof InMemoryRelation) {
            functions(((InMemoryRelation) plan).cacheBuilder().logicalPlan(), digests);
        }
    }

    private void calls(Expression expression, StringBuilder digests) throws NoSuchAlgorithmException {
        if (expression instanceof PythonUDF && named.matcher(((PythonUDF) expression).name()).lookingAt()) {
            scala.collection.Seq command = ((PythonUDF) expression).func().command();
            byte[] bytes = (byte[]) command.toArray(ClassTag$.MODULE$.Byte());
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(bytes);
            digests.append(' ').append(HexFormat.of().formatHex(digest));
        }
        for (int n = 0; n < expression.children().length(); n++) {
            calls((Expression) expression.children().apply(n), digests);
        }
    }
}
