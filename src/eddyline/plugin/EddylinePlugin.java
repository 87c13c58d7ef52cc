package eddyline.spark;

import java.util.Collections;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationStart;

/**
 * spark.plugins=eddyline.spark.EddylinePlugin: the extensions, and a Python that is there before it is asked.
 *
 * Written in the Java that Janino compiles, too: no lambdas, and generics are only decoration.
 */
public final class EddylinePlugin implements SparkPlugin {
    public DriverPlugin driverPlugin() {
        return new Driver();
    }

    public ExecutorPlugin executorPlugin() {
        return null;
    }

    private static final class Driver implements DriverPlugin {
        private SparkContext context;

        public Map init(final SparkContext context, PluginContext plugins) {
            this.context = context;
            if (!PythonProcess.canServe(context)) {
                return Collections.emptyMap();
            }
            SparkConf conf = context.conf();
            String before = conf.get("spark.sql.extensions", "");  // read with the first session
            if (before.indexOf(Extensions.NAME) < 0) {
                conf.set("spark.sql.extensions", before.isEmpty() ? Extensions.NAME : before + "," + Extensions.NAME);
            }
            if (!conf.get("spark.eddyline.eager", "true").trim().equalsIgnoreCase("false")) {
                context.addSparkListener(new SparkListener() {
                    public void onApplicationStart(SparkListenerApplicationStart start) {
                        PythonProcess.of(context).isThere();
                    }
                });
            }
            return Collections.emptyMap();
        }

        public void shutdown() {
            PythonProcess.end(context);
        }
    }
}
