package eddyline.spark;

import eddyline.catalyst.AdaptingRule;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.classic.SparkSession;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * spark.sql.extensions=eddyline.spark.Extensions: every session of the application is adapted.
 *
 * Written in the Java that Janino compiles, too: no lambdas, and generics are only decoration.
 */
public final class Extensions extends AbstractFunction1 {
    static final String NAME = "eddyline.spark.Extensions";

    /** The names of the functions that give tables, after "eddyline_". */
    private static final String[] TABLES = {"explain", "live", "report", "status"};

    /** Whether sessions of this JVM have what is here. */
    static volatile boolean areThere = false;

    public Object apply(Object given) {
        SparkSessionExtensions extensions = (SparkSessionExtensions) given;
        areThere = true;
        // Spark makes these rules whenever it optimizes a plan: the time to put ours after all of Spark's.
        extensions.injectOptimizerRule(new AbstractFunction1() {
            public Object apply(Object session) {
                Extensions.install((SparkSession) session);
                return new LookedUpTables((SparkSession) session);
            }
        });
        // Made once for a session, with its analyzer: the time to give it functions.
        extensions.injectResolutionRule(new AbstractFunction1() {
            public Object apply(Object session) {
                PythonProcess process = PythonProcess.of(((SparkSession) session).sparkContext());
                process.giveFunctions((SparkSession) session);
                return new AskedTables(process, (SparkSession) session);
            }
        });
        for (int n = 0; n < TABLES.length; n++) {
            final String name = TABLES[n];
            extensions.injectTableFunction(new Tuple3(
                new FunctionIdentifier("eddyline_" + name),
                new ExpressionInfo(NAME, "eddyline_" + name),
                new AbstractFunction1() {
                    public Object apply(Object arguments) {
                        return AskedTables.asked(name, (Seq) arguments);
                    }
                }));
        }
        return BoxedUnit.UNIT;
    }

    /** Have a session apply the rule after all of Spark's, unless a program's own Eddyline adapts its plans. */
    static void install(SparkSession session) {
        ExperimentalMethods methods = session.experimental();
        synchronized (methods) {
            Seq rules = methods.extraOptimizations();
            for (int n = 0; n < rules.length(); n++) {
                if (rules.apply(n) instanceof AdaptingRule && ((AdaptingRule) rules.apply(n)).adapts()) {
                    return;
                }
            }
            methods.extraOptimizations_$eq((Seq) rules.appended(PythonProcess.of(session.sparkContext()).rule()));
        }
    }
}
