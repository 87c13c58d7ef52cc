package eddyline.catalyst;

import com.codahale.metrics.Counter;
import com.codahale.metrics.MetricRegistry;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import org.apache.spark.metrics.MetricsSystem;
import org.apache.spark.metrics.source.Source;
import org.apache.spark.util.Utils;

/**
 * Eddyline's counters in Spark's metrics system, for whichever sinks an application has.
 *
 * Nothing is counted here, and nothing happens unless a sink reads: then Python is asked, for all counters at once.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class CounterSource implements Source {
    /** Nanoseconds for which an answer stands: a sink reads one counter after the other. */
    private static final long FRESH = 500L * 1000 * 1000;

    /** Milliseconds that a sink waits for Python. */
    private static final long PATIENCE = 1000;

    private final MetricRegistry registry = new MetricRegistry();
    private MetricsSystem system;
    private PythonSide side;
    private Supplier values;
    private long[] known;
    private long unansweredBefore;
    private long readAt;
    private boolean read;

    /**
     * Begin, in the metrics system of the application that runs.
     *
     * @param names of counters, with commas between; the one that is `unanswered` is counted in the JVM
     * @param values gives as many numbers, with commas between
     */
    public void begin(PythonSide side, String names, String unanswered, Supplier values) throws Throwable {
        this.side = side;
        this.values = values;
        this.unansweredBefore = side.unanswered();
        String[] each = names.split(",");
        this.known = new long[each.length];
        for (int n = 0; n < each.length; n++) {
            registry.register(each[n], new Pulled(each[n].equals(unanswered) ? -1 : n));
        }
        system = system();
        system.registerSource(this);
    }

    /** End this. */
    public void end() {
        system.removeSource(this);
    }

    /** By handles: whoever looks at all methods of `SparkEnv`, as a compiler does, misses classes of protobuf's. */
    private static MetricsSystem system() throws Throwable {
        Class kind = Utils.classForName("org.apache.spark.SparkEnv", true, false);
        MethodHandles.Lookup lookup = MethodHandles.publicLookup();
        Object environment = lookup.findStatic(kind, "get", MethodType.methodType(kind))
            .invokeWithArguments(new Object[0]);
        return (MetricsSystem) lookup.findVirtual(kind, "metricsSystem", MethodType.methodType(MetricsSystem.class))
            .invokeWithArguments(new Object[] {environment});
    }

    public String sourceName() {
        return "eddyline";
    }

    public MetricRegistry metricRegistry() {
        return registry;
    }

    private synchronized long value(int place) {
        if (place < 0) {
            return side.unanswered() - unansweredBefore;
        }
        if (!read || System.nanoTime() - readAt > FRESH) {
            Object told = side.askAside(new Asking(values), PATIENCE);
            String[] each = told == null ? new String[0] : ((String) told).split(",");
            for (int n = 0; n < each.length; n++) {
                known[n] = Long.parseLong(each[n]);
            }
            read = true;  // also where there is no answer: the other counters do not wait again
            readAt = System.nanoTime();
        }
        return known[place];
    }

    /** The question to Python. */
    private static final class Asking implements Callable {
        private final Supplier values;

        Asking(Supplier values) {
            this.values = values;
        }

        public Object call() {
            return values.get();
        }
    }

    /** A counter that others count. */
    private final class Pulled extends Counter {
        private final int place;

        Pulled(int place) {
            this.place = place;
        }

        public long getCount() {
            return value(place);
        }
    }
}
