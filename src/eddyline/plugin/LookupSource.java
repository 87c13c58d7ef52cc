package eddyline.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.sources.SchemaRelationProvider;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * CREATE TABLE … USING eddyline_lookup OPTIONS (…): a table whose rows are looked up.
 *
 * The catalog keeps columns and options as those of any table, and DROP TABLE forgets them. What they say is for Python
 * to read: once when a table is made or first named in a session, so that mistakes are told then, and whenever a query
 * with it is optimized (`LookedUpTables`).
 *
 * Written in the Java that Janino compiles, too: no lambdas, and generics are only decoration.
 */
public final class LookupSource implements RelationProvider, SchemaRelationProvider, DataSourceRegister {
    static final String NAME = "eddyline_lookup";

    /** What a catalog adds to the options: where the table would have its files, and how. */
    private static final String[] NOT_OPTIONS = {"path", "serialization.format"};

    /** The columns, where a statement does not name them. */
    private static final String COLUMNS = "schema";

    public String shortName() {
        return NAME;
    }

    public BaseRelation createRelation(SQLContext context, scala.collection.immutable.Map options) {
        if (!options.contains(COLUMNS)) {
            throw new IllegalArgumentException("a table USING " + NAME + " needs columns, as in CREATE TABLE weather "
                + "(station string, wind double) USING " + NAME + " …, or the option schema");
        }
        return made(context, options, StructType.fromDDL((String) options.apply(COLUMNS)));
    }

    public BaseRelation createRelation(SQLContext context, scala.collection.immutable.Map options, StructType columns) {
        return made(context, options, columns);
    }

    private static BaseRelation made(SQLContext context, scala.collection.immutable.Map options, StructType columns) {
        if (!Extensions.areThere) {
            throw new IllegalStateException("tables USING " + NAME + " need Eddyline's plug-in: set "
                + "spark.plugins=eddyline.spark.EddylinePlugin when the application starts");
        }
        Relation relation = new Relation(context, options, columns);
        relation.leaf(NAME, (SparkSession) context.sparkSession());
        return relation;
    }

    /** A table as plans have it before they are optimized. */
    static final class Relation extends BaseRelation {
        private final SQLContext context;
        private final StructType columns;
        private final Map options;

        Relation(SQLContext context, scala.collection.immutable.Map options, StructType columns) {
            this.context = context;
            this.columns = columns.asNullable();
            this.options = new TreeMap(CollectionConverters.asJava(options));
            this.options.remove(COLUMNS);
            for (int n = 0; n < NOT_OPTIONS.length; n++) {
                this.options.remove(NOT_OPTIONS[n]);
            }
        }

        public SQLContext sqlContext() {
            return context;
        }

        public StructType schema() {
            return columns;
        }

        /** What stands for the table in a plan that Python may rewrite; raises what is wrong with the options. */
        LogicalPlan leaf(String name, SparkSession session) {
            Map told = new HashMap();
            told.put("name", name);
            told.put("columns", columns.json());
            told.put("options", options);
            String definition;
            try {
                definition = new ObjectMapper().writeValueAsString(told);
            } catch (JsonProcessingException impossible) {
                throw new IllegalStateException(impossible);
            }
            Object found = PythonProcess.of(session.sparkContext()).answer("lookup", definition, session);
            if (found instanceof LogicalPlan) {
                return (LogicalPlan) found;
            }
            throw new IllegalArgumentException((String) found);
        }

        public String toString() {
            return NAME;
        }

        public boolean equals(Object other) {
            return other instanceof Relation && columns.equals(((Relation) other).columns)
                && options.equals(((Relation) other).options);
        }

        public int hashCode() {
            return 31 * columns.hashCode() + options.hashCode();
        }
    }
}
