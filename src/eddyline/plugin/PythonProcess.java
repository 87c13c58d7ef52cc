package eddyline.spark;

import eddyline.catalyst.AdaptingRule;
import eddyline.catalyst.PythonSide;
import java.io.File;
import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.python.Py4JServer;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.sql.classic.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import py4j.ClientServer;
import scala.Option;

/**
 * The Python process that rewrites the plans of an application: begun when it is needed, begun again when it has died,
 * after longer and longer pauses, and ended with the application.
 *
 * Its standard input is a pipe from here: it ends when that does, however this JVM ends. It calls this JVM, over a
 * gateway that listens on loopback and asks for a secret, and answers in threads of its own (`PythonSide`).
 *
 * Written in the Java that Janino compiles, too: no lambdas, and generics are only decoration.
 */
public final class PythonProcess implements PythonSide.Keeper {
    private static final Logger LOG = LoggerFactory.getLogger("eddyline");

    private static final String SETTINGS = "spark.eddyline.";

    /** What no Python is told: those would have it take a thin client's way, or hold secrets. */
    private static final String[] NOT_FOR_IT = {
        "SPARK_CONNECT_", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE", "PYSPARK_DRIVER_"};

    /** What it needs of the environment: names, and how names begin. */
    private static final String[] NEEDED = {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT",
        "VIRTUAL_ENV", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "JAVA_HOME"};
    private static final String[] NEEDED_BEGINNINGS = {
        "LC_", "XDG_", "CONDA_", "PYTHON", "PYSPARK_", "SPARK_", "HADOOP_", "EDDYLINE_", "NUMBA_", "OMP_", "OPENBLAS_",
        "MKL_"};

    /** Between the deaths of a process and its next begin, in nanoseconds; one that has lived so long begins anew. */
    private static final long FIRST_PAUSE = TimeUnit.SECONDS.toNanos(1);
    private static final long LONGEST_PAUSE = TimeUnit.MINUTES.toNanos(5);
    private static final long LONG_LIFE = TimeUnit.MINUTES.toNanos(1);

    /** Milliseconds that a process may take to be ready. */
    private static final long STARTING = 60000;

    /** Milliseconds that a process stays after its application has ended, for reports of the last actions. */
    private static final long STAYING = 3000;

    private static PythonProcess current;

    /** Set in the thread that has Python read the application's functions. */
    private static final ThreadLocal READING = new ThreadLocal();

    private final SparkContext context;
    private final PythonSide side = new PythonSide();
    private final AdaptingRule rule = new AdaptingRule();
    private final Map told = new ConcurrentHashMap();
    private volatile BiFunction rewrite;
    private volatile BiFunction tables;
    private volatile BiFunction reports;  // null where nobody wants any
    private Run run;  // guarded by this, as what follows
    private String refused;  // why none begins any more; null where one may
    private long pausedUntil;
    private long pause;

    /** One process, from its begin to its end. */
    private static final class Run {
        final Py4JServer server;
        final Process process;
        final long begun = System.nanoTime();
        volatile boolean ready;

        Run(Py4JServer server, Process process) {
            this.server = server;
            this.process = process;
        }
    }

    private PythonProcess(SparkContext context) {
        this.context = context;
        side.isKeptBy(this);
        rule.be(side, new Rewriter(this), false, null);
        rule.heedSessions();
    }

    /** Whether this is a Spark that the classes here are made for; says so where it is not. */
    static boolean canServe(SparkContext context) {
        if (context.version().startsWith("3.")) {
            LOG.warn("Eddyline's plug-in needs Spark 4.0 or newer; queries run as Spark {} plans them", context.version());
            return false;
        }
        return true;
    }

    /** That of an application. */
    static synchronized PythonProcess of(final SparkContext context) {
        if (current == null || current.context != context) {
            if (current != null) {
                current.stop();
            }
            current = new PythonProcess(context);
            context.addSparkListener(new SparkListener() {
                public void onApplicationEnd(SparkListenerApplicationEnd end) {
                    PythonProcess.end(context);
                }
            });
        }
        return current;
    }

    /** End that of an application, which ends. */
    static synchronized void end(SparkContext context) {
        if (current != null && current.context == context) {
            current.stop();
            current = null;
        }
    }

    AdaptingRule rule() {
        return rule;
    }

    // What the process itself calls.

    /** The application that it serves, for a context of its own kind. */
    public static JavaSparkContext application() {
        return JavaSparkContext.fromSparkContext(mine().context);
    }

    /** Where its threads are to serve. */
    public static PythonSide side() {
        return mine().side;
    }

    /** Hear that it is ready: what it answers plans with, and names of table functions with their arguments. */
    public static void ready(BiFunction rewrite, BiFunction tables) {
        PythonProcess mine = mine();
        mine.rewrite = rewrite;
        mine.tables = tables;
        synchronized (mine) {
            if (mine.run != null) {
                mine.run.ready = true;
            }
        }
    }

    /**
     * Hear what makes reports of actions, for the application's event log.
     *
     * Return what to ask for them from now on, whichever process there is by then; null where that was told before.
     */
    public static BiFunction reportedBy(BiFunction reports) {
        PythonProcess mine = mine();
        boolean first = mine.reports == null;
        mine.reports = reports;
        return first ? new Reporter(mine) : null;
    }

    /** Hear that it cannot serve this application, nor can another one like it. */
    public static void refuse(String why) {
        PythonProcess mine = mine();
        synchronized (mine) {
            mine.refused = why;
        }
        mine.tell(why);
    }

    private static synchronized PythonProcess mine() {
        return current;
    }

    // Its life.

    /** Whether it runs, or was begun now. */
    public synchronized boolean isThere() {
        if (run != null) {
            return true;
        }
        if (refused != null || context.isStopped() || pause > 0 && System.nanoTime() - pausedUntil < 0) {
            return false;
        }
        Py4JServer server = new Py4JServer(context.conf());
        if (!(server.server() instanceof ClientServer)) {  // Python could not be asked over its own connections
            refused = "Queries run as Spark plans them: Eddyline's plug-in needs PYSPARK_PIN_THREAD as it is by default";
            tell(refused);
            return false;
        }
        server.start();
        try {
            final Run made = new Run(server, processFor(server).start());
            run = made;
            made.process.onExit().thenRun(new Runnable() {
                public void run() {
                    PythonProcess.this.hasEnded(made);
                }
            });
            return true;
        } catch (IOException error) {
            server.shutdown();
            refused = "Queries run as Spark plans them: Eddyline's Python does not start (" + error.getMessage()
                + "). Name another one by spark.eddyline.python";
            tell(refused);
            return false;
        }
    }

    /** End it where it has been silent for longer than any query of the application waits by default. */
    public void isSilent(long milliseconds) {
        Run now;
        synchronized (this) {
            now = run;
        }
        if (now == null) {
            return;
        }
        long limit = now.ready ? AdaptingRule.milliseconds(context.conf().get(AdaptingRule.LIMIT, AdaptingRule.USUAL))
            : STARTING;
        if (milliseconds >= limit) {
            LOG.warn("Eddyline's Python process has not answered for {} ms, and is ended", milliseconds);
            now.process.destroyForcibly();
        }
    }

    private void hasEnded(Run gone) {
        String why = "Eddyline's Python process has ended, with " + gone.process.exitValue();
        synchronized (this) {
            if (run != gone) {  // as it was to
                return;
            }
            run = null;
            boolean good = gone.ready && System.nanoTime() - gone.begun > LONG_LIFE;
            pause = good || pause == 0 ? FIRST_PAUSE : Math.min(2 * pause, LONGEST_PAUSE);
            pausedUntil = System.nanoTime() + pause;
            if (refused == null && !gone.ready) {
                why += " before it was ready. Is eddyline of this version installed for " + python()
                    + "? spark.eddyline.python names another one";
            }
        }
        gone.server.shutdown();
        side.lose(why);
        if (refused == null) {
            tell(why);
        }
    }

    private void stop() {
        final Run last;
        synchronized (this) {
            last = run;
            run = null;
            refused = "the application has ended";
        }
        if (last == null || reports == null) {
            finish(last);
            return;
        }
        Thread later = new Thread("eddyline-ending") {
            public void run() {
                try {
                    Thread.sleep(STAYING);
                } catch (InterruptedException now) {
                    // As if it were over.
                }
                finish(last);
            }
        };
        later.setDaemon(true);  // where the JVM ends, so does the process
        later.start();
    }

    private void finish(Run last) {
        if (last != null) {
            last.process.destroy();
            last.server.shutdown();
        }
        side.lose("the application has ended");
    }

    private void tell(String what) {
        if (told.putIfAbsent(what, what) == null) {
            LOG.warn(what);
        }
    }

    private String python() {
        String chosen = context.conf().get(SETTINGS + "python", "");
        return chosen.isEmpty() ? pythonOfWorkers() : chosen;
    }

    private String pythonOfWorkers() {
        String chosen = context.conf().get("spark.pyspark.python", "");
        if (!chosen.isEmpty()) {
            return chosen;
        }
        String ofWorkers = System.getenv("PYSPARK_PYTHON");
        return ofWorkers == null || ofWorkers.isEmpty() ? "python3" : ofWorkers;
    }

    private ProcessBuilder processFor(Py4JServer server) {
        String[] command = {python(), "-m", "eddyline.plugin"};
        ProcessBuilder builder = new ProcessBuilder(command);
        Map environment = builder.environment();
        Object[] names = ((Set) environment.keySet()).toArray();
        String others = "," + context.conf().get(SETTINGS + "environment", "").replace(" ", "") + ",";
        for (int n = 0; n < names.length; n++) {
            String name = (String) names[n];
            boolean asked = others.indexOf("," + name + ",") >= 0;
            if (!asked && (!isNeeded(name) || beginsWith(name, NOT_FOR_IT))) {
                environment.remove(name);
            }
        }
        environment.put("PYSPARK_GATEWAY_PORT", Integer.toString(server.getListeningPort()));
        environment.put("PYSPARK_GATEWAY_SECRET", server.secret());
        environment.put("PYSPARK_PIN_THREAD", "true");
        environment.put("PYSPARK_PYTHON", pythonOfWorkers());
        // Where this Python has no PySpark of its own.
        environment.put("EDDYLINE_SPARKS_PYTHON", PythonUtils.sparkPythonPath());
        builder.redirectOutput(ProcessBuilder.Redirect.INHERIT);
        builder.redirectError(ProcessBuilder.Redirect.INHERIT);
        return builder;
    }

    private static boolean isNeeded(String name) {
        for (int n = 0; n < NEEDED.length; n++) {
            if (NEEDED[n].equals(name)) {
                return true;
            }
        }
        return beginsWith(name, NEEDED_BEGINNINGS);
    }

    private static boolean beginsWith(String name, String[] beginnings) {
        for (int n = 0; n < beginnings.length; n++) {
            if (name.startsWith(beginnings[n])) {
                return true;
            }
        }
        return false;
    }

    // What it is asked.

    /** What is asked for a plan, whichever process there is by then. */
    private static final class Rewriter implements BiFunction {
        private final PythonProcess process;

        Rewriter(PythonProcess process) {
            this.process = process;
        }

        public Object apply(Object plan, Object session) {
            Object found = process.rewrite.apply(plan, session);
            if (found instanceof String) {  // what the user is to do
                throw new PythonSide.Refusal((String) found);
            }
            return found;
        }
    }

    /** The same for reports. */
    private static final class Reporter implements BiFunction {
        private final PythonProcess process;

        Reporter(PythonProcess process) {
            this.process = process;
        }

        public Object apply(Object action, Object plan) {
            return process.reports.apply(action, plan);
        }
    }

    /** Give a new session the Python functions that the application names, unless their own file has made it. */
    void giveFunctions(SparkSession session) {
        if (context.conf().get(SETTINGS + "functions", "").isEmpty() || READING.get() != null) {
            return;
        }
        // Not as the session says, which cannot be asked yet: it is being made.
        String limit = context.conf().get(AdaptingRule.LIMIT, AdaptingRule.USUAL);
        Object failed = asked("functions", null, session, AdaptingRule.milliseconds(limit));
        if (failed != null && !"".equals(failed)) {
            tell("The functions of spark.eddyline.functions are not there: " + failed);
        }
    }

    /** Ask Python something for a session, which says how long it waits; raise where there is no answer by then. */
    Object answer(String what, String argument, SparkSession session) {
        String limit = session.sessionState().conf().getConfString(AdaptingRule.LIMIT, AdaptingRule.USUAL);
        Object found = asked(what, argument, session, AdaptingRule.milliseconds(limit));
        if (found == null) {
            throw new IllegalStateException("Eddyline's Python does not answer; the driver's log says why");
        }
        return found;
    }

    /** Ask Python something for a session; null where there is no answer in time. */
    private Object asked(final String what, final String argument, final SparkSession session, long milliseconds) {
        final ClassLoader loader = Thread.currentThread().getContextClassLoader();
        return side.ask(new Callable() {
            public Object call() {
                Option before = SparkSession.getActiveSession();  // of a thread that was asked something else
                Thread.currentThread().setContextClassLoader(loader);
                SparkSession.setActiveSession(session);
                READING.set(what.equals("functions") ? what : null);
                try {
                    return tables.apply(what, argument);
                } finally {
                    READING.remove();
                    if (before.isDefined()) {
                        SparkSession.setActiveSession((SparkSession) before.get());
                    } else {
                        SparkSession.clearActiveSession();
                    }
                }
            }
        }, milliseconds);
    }
}
