package eddyline.spark;

import eddyline.catalyst.AdaptingRule;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
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

    private static final Rule NOTHING = new Nothing();

    public Object apply(Object given) {
        SparkSessionExtensions extensions = (SparkSessionExtensions) given;
        // Spark makes these rules whenever it optimizes a plan: the time to put ours after all of Spark's.
        extensions.injectOptimizerRule(new AbstractFunction1() {
            public Object apply(Object session) {
                Extensions.install((SparkSession) session);
                return NOTHING;
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

    /** Have a session apply the rule after all of Spark's, unless it applies one of Eddyline's already. */
    static void install(SparkSession session) {
        ExperimentalMethods methods = session.experimental();
        synchronized (methods) {
            Seq rules = methods.extraOptimizations();
            for (int n = 0; n < rules.length(); n++) {
                if (rules.apply(n) instanceof AdaptingRule) {
                    return;
                }
            }
            methods.extraOptimizations_$eq((Seq) rules.appended(PythonProcess.of(session.sparkContext()).rule()));
        }
    }

    /** What is given where Spark wants a rule. */
    private static final class Nothing extends Rule {
        public TreeNode apply(TreeNode plan) {
            return plan;
        }
    }
}
