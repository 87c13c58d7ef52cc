package eddyline.catalyst;

import com.fasterxml.jackson.databind.util.RawValue;
import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * The report of an action, as it stands in an event log: with its number, and as JSON.
 *
 * Spark writes an event by its getters, with the name of its class, which logs keep for good. A history server
 * that does not have the class leaves the event aside.
 */
public final class RoutingReportEvent implements SparkListenerEvent {
    private final long action;
    private final String report;

    public RoutingReportEvent(long action, String report) {
        this.action = action;
        this.report = report;
    }

    /** The number of the action. */
    public long getAction() {
        return action;
    }

    /** The report, which is JSON already. */
    public RawValue getReport() {
        return new RawValue(report);
    }

    public boolean logEvent() {
        return true;
    }
}
