package eddyline.catalyst;

import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeLike;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.sql.execution.joins.BaseJoinExec;
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec;
import org.apache.spark.sql.execution.joins.BroadcastNestedLoopJoinExec;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * Hears what adaptive execution has measured of shuffles with a name, and what it has made of the joins above them.
 *
 * A shuffle has its name by a tag of the node in the logical plan that it comes of. Of each action that is over it
 * keeps a few words, the latest ones; plans and rows it does not keep.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class MeasuredStages extends SparkListener {
    /** Actions and stages that are remembered, the latest ones of each. */
    private static final int MOST = 512;

    private static final TreeNodeTag NAME = new TreeNodeTag("eddyline.measured");

    private static final String BROADCAST = "broadcast";
    private static final String SHUFFLED = "shuffled";
    private static final String OTHER_BROADCAST = "other-broadcast";
    private static final String GONE = "gone";

    private final Map started = new LinkedHashMap();
    private final Map ended = new LinkedHashMap();
    private final Map told = new LinkedHashMap();

    /** Give a node a name: that of the shuffle that Spark makes of it. */
    public static void name(LogicalPlan node, String name) {
        node.setTagValue(NAME, name);
    }

    /** Begin to listen. */
    public void begin(SparkContext context) {
        context.addSparkListener(this);
    }

    /**
     * Return what was measured in an action: a line for each shuffle, of its rows, bytes, what became of it, the
     * milliseconds from the beginning of the action until it was there, -1 where nobody knows, and its name.
     *
     * @param milliseconds how long to wait for news of an action that is over
     */
    public String told(long action, long milliseconds) throws InterruptedException {
        Long number = Long.valueOf(action);
        long until = System.currentTimeMillis() + milliseconds;
        boolean running = SQLExecution.getQueryExecution(action) != null;
        synchronized (told) {
            while (!running && !told.containsKey(number)) {
                long left = until - System.currentTimeMillis();
                if (left <= 0) {
                    break;
                }
                told.wait(left);
            }
            Object lines = told.get(number);
            return lines == null ? "" : (String) lines;
        }
    }

    public void onStageCompleted(SparkListenerStageCompleted event) {
        StageInfo stage = event.stageInfo();
        Option shuffle = stage.shuffleDepId();
        Option time = stage.completionTime();
        if (shuffle.isDefined() && time.isDefined() && stage.failureReason().isEmpty()) {
            keep(ended, shuffle.get(), time.get());
        }
    }

    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof SparkListenerSQLExecutionStart) {
            SparkListenerSQLExecutionStart start = (SparkListenerSQLExecutionStart) event;
            keep(started, Long.valueOf(start.executionId()), Long.valueOf(start.time()));
        } else if (event instanceof SparkListenerSQLExecutionEnd) {
            SparkListenerSQLExecutionEnd end = (SparkListenerSQLExecutionEnd) event;
            Long action = Long.valueOf(end.executionId());
            String lines = lines(end.qe(), (Long) started.remove(action));
            synchronized (told) {
                keep(told, action, lines);
                told.notifyAll();
            }
        }
    }

    private static void keep(Map kept, Object key, Object value) {
        kept.put(key, value);
        if (kept.size() > MOST) {
            kept.remove(kept.keySet().iterator().next());
        }
    }

    private String lines(QueryExecution execution, Long since) {
        StringBuilder lines = new StringBuilder();
        try {
            Map found = new IdentityHashMap();
            Map plans = new IdentityHashMap();
            walk(execution.executedPlan(), GONE, found, plans);
            Map seen = new IdentityHashMap();
            for (java.util.Iterator each = plans.keySet().iterator(); each.hasNext();) {
                Iterator stages = ((AdaptiveSparkPlanExec) each.next()).context().stageCache().valuesIterator();
                while (stages.hasNext()) {
                    Object stage = stages.next();
                    if (stage instanceof ShuffleQueryStageExec && ((QueryStageExec) stage).isMaterialized()) {
                        ShuffleExchangeLike shuffle = ((ShuffleQueryStageExec) stage).shuffle();
                        if (seen.put(shuffle, shuffle) == null) {
                            tell(shuffle, found.get(shuffle), since, lines);
                        }
                    }
                }
            }
        } catch (Throwable failed) {  // as where a query was never planned, or Spark is another one
            return "";
        }
        return lines.toString();
    }

    private void tell(ShuffleExchangeLike shuffle, Object outcome, Long since, StringBuilder lines) {
        Option logical = ((SparkPlan) shuffle).logicalLink();
        Option name = logical.isDefined() ? ((LogicalPlan) logical.get()).getTagValue(NAME) : Option.empty();
        if (name.isEmpty()) {
            return;
        }
        Statistics measured = shuffle.runtimeStatistics();
        Object there = null;
        if (shuffle instanceof ShuffleExchangeExec) {
            there = ended.get(Integer.valueOf(((ShuffleExchangeExec) shuffle).shuffleDependency().shuffleId()));
        }
        long waited = -1;
        if (there != null && since != null) {  // rows of an action before were there at once
            waited = Math.max(((Long) there).longValue() - since.longValue(), 0);
        }
        lines.append(measured.rowCount().isDefined() ? measured.rowCount().get() : "-1").append(' ');
        lines.append(measured.sizeInBytes()).append(' ').append(outcome == null ? GONE : outcome).append(' ');
        lines.append(waited).append(' ').append(name.get()).append('\n');
    }

    /** Find the shuffles in a plan that has run, and what each is joined by. */
    private void walk(SparkPlan plan, String outcome, Map found, Map plans) {
        if (plan instanceof AdaptiveSparkPlanExec) {
            plans.put(plan, plan);
            walk(((AdaptiveSparkPlanExec) plan).executedPlan(), outcome, found, plans);
            return;
        }
        if (plan instanceof QueryStageExec) {
            if (plan instanceof ShuffleQueryStageExec) {
                ShuffleExchangeLike shuffle = ((ShuffleQueryStageExec) plan).shuffle();
                if (found.get(shuffle) == null || !outcome.equals(BROADCAST)) {
                    found.put(shuffle, outcome);
                }
            }
            walk(((QueryStageExec) plan).plan(), outcome, found, plans);
            return;
        }
        if (plan instanceof ReusedExchangeExec) {
            walk((SparkPlan) ((ReusedExchangeExec) plan).child(), outcome, found, plans);
            return;
        }
        String below = outcome;
        if (plan instanceof BroadcastHashJoinExec || plan instanceof BroadcastNestedLoopJoinExec) {
            below = OTHER_BROADCAST;
        } else if (plan instanceof BaseJoinExec) {
            below = SHUFFLED;
        } else if (plan instanceof BroadcastExchangeLike) {
            below = BROADCAST;
        }
        all(plan.children(), below, found, plans);
        all(plan.subqueries(), GONE, found, plans);
    }

    private void all(Seq plans, String outcome, Map found, Map adaptive) {
        for (int n = 0; n < plans.length(); n++) {
            walk((SparkPlan) plans.apply(n), outcome, found, adaptive);
        }
    }
}
