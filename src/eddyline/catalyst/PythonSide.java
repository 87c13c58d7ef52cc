package eddyline.catalyst;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
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

    /** Who sees to it that there is a Python to ask: a plug-in of the driver's, which has started it. */
    public interface Keeper {
        /** Whether there is one, or will be soon. */
        boolean isThere();

        /** Hear that nothing was answered for so long, in milliseconds, while somebody waited. */
        void isSilent(long milliseconds);
    }

    /** What Python has to say to whoever has asked, instead of an answer: an error, but none of its own. */
    public static final class Refusal extends IllegalArgumentException {
        public Refusal(String message) {
            super(message);
        }
    }

    private final LinkedBlockingQueue waiting = new LinkedBlockingQueue();
    private final AtomicInteger serving = new AtomicInteger();
    private final Set threads = Collections.synchronizedSet(new HashSet());  // those that serve
    private volatile Keeper keeper;  // null where Python itself came
    private volatile String lost = "";  // why the last Python is gone
    private int losses;  // guarded by this
    private int underWay;  // questions; likewise
    private long silentSince;  // likewise, in nanoseconds
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
        threads.add(Thread.currentThread());
        try {
            while (true) {
                ((FutureTask) waiting.take()).run();
            }
        } finally {
            threads.remove(Thread.currentThread());
            serving.decrementAndGet();
        }
    }

    /** Have somebody keep a Python, who is asked for it from now on. */
    public void isKeptBy(Keeper keeper) {
        this.keeper = keeper;
    }

    /** Hear why Python is gone: nobody waits for it any more, and nothing holds that it has said. */
    public void lose(String why) {
        ArrayList left = new ArrayList();
        synchronized (this) {
            lost = why;
            losses++;
            inARow = 0;  // whatever comes next is another one
            waiting.drainTo(left);
        }
        for (int n = 0; n < left.size(); n++) {
            ((FutureTask) left.get(n)).cancel(false);
        }
        Object[] serving = threads.toArray();
        for (int n = 0; n < serving.length; n++) {
            ((Thread) serving[n]).interrupt();
        }
        rewritings.clear();
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
     * What Python raises or refuses is raised here.
     */
    public Object ask(Callable question, long milliseconds) {
        tend();
        FutureTask task = new FutureTask(question);
        if (threads.contains(Thread.currentThread())) {  // which is being asked itself, and can ask on
            return answered(task);
        }
        if (isPaused() || !begin(task)) {
            passedOver.incrementAndGet();
            return null;
        }
        boolean expected = keeper != null || serving.get() > 0;
        long limit = expected ? milliseconds : Math.min(milliseconds, UNSERVED);
        try {
            Object found = task.get(limit, TimeUnit.MILLISECONDS);
            succeeded();
            return found;
        } catch (TimeoutException late) {
            giveUp(task);
            tellOfSilence();
            return failure("Python has not answered within " + limit + " ms");
        } catch (CancellationException gone) {  // as for all others who have waited: one failure, and told as one
            failed.incrementAndGet();
            lastFailure = lost;
            LOG.warn("A query is left to Spark, as {}", lost);
            return null;
        } catch (InterruptedException interrupted) {  // the query is being cancelled
            giveUp(task);
            Thread.currentThread().interrupt();
            return null;
        } catch (ExecutionException raised) {
            return raisedOrFailed(raised.getCause());
        } finally {
            synchronized (this) {
                underWay--;
            }
        }
    }

    private Object answered(FutureTask task) {
        task.run();
        try {
            return task.get();
        } catch (ExecutionException raised) {
            return raisedOrFailed(raised.getCause());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return null;
        }
    }

    /** Put a question into the queue; false where there is no Python, and none will come soon. */
    private boolean begin(FutureTask task) {
        int before;
        synchronized (this) {
            before = losses;
        }
        if (keeper != null && !keeper.isThere()) {
            return false;
        }
        synchronized (this) {
            if (underWay == 0 && inARow == 0) {
                silentSince = System.nanoTime();
            }
            underWay++;
            if (losses == before) {
                waiting.add(task);
            } else {  // it went meanwhile
                task.cancel(false);
            }
        }
        return true;
    }

    /** Give a question up. */
    private void giveUp(FutureTask task) {
        waiting.remove(task);
        task.cancel(false);
    }

    private void tellOfSilence() {
        long silent;
        synchronized (this) {
            silent = System.nanoTime() - silentSince;
        }
        if (keeper != null) {
            keeper.isSilent(TimeUnit.NANOSECONDS.toMillis(silent));
        }
    }

    private Object raisedOrFailed(Throwable cause) {
        if (!(cause instanceof Refusal) && !String.valueOf(cause.getMessage()).startsWith(RAISED)) {
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
        giveUp(task);
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
            silentSince = System.nanoTime();
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
