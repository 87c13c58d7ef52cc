package eddyline.catalyst;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import py4j.GatewayServer;

/**
 * Asks Python something, over connections that Python has opened: one for each of its threads that serve here.
 *
 * Py4J itself opens a connection for each thread of the JVM that asks, waits for an answer without end, and leaves
 * the connection behind when the thread ends. Here nobody waits longer than a limit, and no query fails of it.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class PythonSide {
    private static final Logger LOG = LoggerFactory.getLogger("eddyline");

    /** What Py4J says where Python has answered, with an error. */
    private static final String RAISED = "An exception was raised by the Python Proxy";

    /** Failures in a row from which on nobody is asked for a while, then twice as long each time. */
    private static final int FEW = 3;
    private static final long FIRST_PAUSE = TimeUnit.SECONDS.toNanos(1);
    private static final long LONGEST_PAUSE = TimeUnit.MINUTES.toNanos(5);

    /** Milliseconds for threads to come back, where all have lost their connections or are about to begin. */
    private static final long UNSERVED = 2000;

    private final LinkedBlockingQueue waiting = new LinkedBlockingQueue();
    private final AtomicInteger serving = new AtomicInteger();
    private final AtomicLong answered = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final AtomicLong passedOver = new AtomicLong();
    private final KnownRewritings rewritings = new KnownRewritings();
    private int inARow;  // failures; guarded by this
    private long pausedUntil;  // likewise, in nanoseconds
    private volatile String lastFailure = "";
    private volatile GatewayServer server;  // over which Python itself is called, as for foreachBatch
    private Object client;  // its own; there is a new one where Python's side moves
    private ThreadConnections connections;  // of the client; null where they cannot be tended

    /** Have the connections closed that threads leave which have called Python through a server. */
    public void tend(GatewayServer server) {
        this.server = server;
        tend();
    }

    private synchronized void tend() {
        Object now = server == null ? null : server.getCallbackClient();
        if (now != client) {
            client = now;
            connections = ThreadConnections.of(now);
        }
        if (connections != null) {
            connections.closeThoseLeft();
        }
    }

    /**
     * Answer in this thread, which is one of Python's, and over its connection, as long as there is one.
     *
     * Where it is lost, the next question gets no answer, and Py4J interrupts the thread.
     */
    public void serve() throws InterruptedException {
        serving.incrementAndGet();
        try {
            while (true) {
                ((FutureTask) waiting.take()).run();
            }
        } finally {
            serving.decrementAndGet();
        }
    }

    /** What became of the plans that Python was asked about. */
    public KnownRewritings rewritings() {
        return rewritings;
    }

    /** Return how many questions were answered, how many were not, and how many were not asked meanwhile. */
    public long[] counts() {
        return new long[] {answered.get(), failed.get(), passedOver.get()};
    }

    /** Return what was the matter with the last question that was not answered; empty where all were. */
    public String lastFailure() {
        return lastFailure;
    }

    /**
     * Return the answer to a question that one of Python's threads is to ask; null where there is none in time.
     *
     * What Python raises is raised here.
     */
    public Object ask(Callable question, long milliseconds) {
        tend();
        if (isPaused()) {
            passedOver.incrementAndGet();
            return null;
        }
        long limit = serving.get() > 0 ? milliseconds : Math.min(milliseconds, UNSERVED);
        FutureTask task = new FutureTask(question);
        waiting.add(task);
        try {
            Object found = task.get(limit, TimeUnit.MILLISECONDS);
            succeeded();
            return found;
        } catch (TimeoutException late) {
            waiting.remove(task);
            task.cancel(false);
            return failure("Python has not answered within " + limit + " ms");
        } catch (InterruptedException interrupted) {  // the query is being cancelled
            waiting.remove(task);
            task.cancel(false);
            Thread.currentThread().interrupt();
            return null;
        } catch (ExecutionException raised) {
            return raisedOrFailed(raised.getCause());
        }
    }

    private Object raisedOrFailed(Throwable cause) {
        if (!String.valueOf(cause.getMessage()).startsWith(RAISED)) {
            return failure(String.valueOf(cause));
        }
        succeeded();
        if (cause instanceof RuntimeException) {
            throw (RuntimeException) cause;
        }
        throw new RuntimeException(cause);
    }

    /**
     * Return the answer to a question that no query waits for; null where there is none in time.
     *
     * It counts for nothing, and nobody hears where Python does not answer. What Python raises gives null too.
     */
    public Object askAside(Callable question, long milliseconds) {
        if (isPaused() || serving.get() == 0) {
            return null;
        }
        FutureTask task = later(question);
        try {
            return task.get(milliseconds, TimeUnit.MILLISECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        } catch (TimeoutException late) {
            // As where Python fails: there is no answer.
        } catch (ExecutionException raised) {
            LOG.debug("Python has not answered", raised);
        }
        waiting.remove(task);
        task.cancel(false);
        return null;
    }

    /** Have a question asked when one of Python's threads is free; nobody waits here. */
    public FutureTask later(Callable question) {
        FutureTask task = new FutureTask(question);
        waiting.add(task);
        return task;
    }

    /** Return about how many plans there was no answer, all in all. */
    public long unanswered() {
        return failed.get() + passedOver.get();
    }

    private synchronized boolean isPaused() {
        return inARow >= FEW && System.nanoTime() - pausedUntil < 0;
    }

    private void succeeded() {
        answered.incrementAndGet();
        synchronized (this) {
            inARow = 0;
        }
    }

    private Object failure(String why) {
        failed.incrementAndGet();
        lastFailure = why;
        String then = "";
        synchronized (this) {
            inARow++;
            if (inARow >= FEW) {
                int doublings = Math.min(inARow - FEW, 20);
                long pause = Math.min(FIRST_PAUSE << doublings, LONGEST_PAUSE);
                pausedUntil = System.nanoTime() + pause;
                then = "; so are all others for " + TimeUnit.NANOSECONDS.toSeconds(pause) + " s";
            }
        }
        LOG.warn("A query is left to Spark, as {}{}", why, then);
        return null;
    }
}
