package eddyline.spark;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts a leaf that Python knows in place of each lookup table of a catalog (`LookupSource`).
 *
 * It does so when a query is optimized, not when it is analyzed: so DataFrames and views do not depend on the Python
 * process that there was when they were made, and the schema of a query is known without one.
 *
 * Written in the Java that Janino compiles, too: no lambdas, and generics are only decoration.
 */
final class LookedUpTables extends Rule {
    private final Leaf leaf;

    LookedUpTables(SparkSession session) {
        this.leaf = new Leaf(session);
    }

    public TreeNode apply(TreeNode plan) {
        return plan.transform(leaf);
    }

    private static final class Leaf extends AbstractPartialFunction {
        private final SparkSession session;

        Leaf(SparkSession session) {
            this.session = session;
        }

        public boolean isDefinedAt(Object node) {
            return node instanceof LogicalRelation && ((LogicalRelation) node).relation() instanceof LookupSource.Relation;
        }

        public Object applyOrElse(Object node, Function1 otherwise) {
            if (!isDefinedAt(node)) {
                return otherwise.apply(node);
            }
            LogicalRelation table = (LogicalRelation) node;
            Option known = table.catalogTable();
            String name = known.isDefined() ? ((CatalogTable) known.get()).identifier().table() : LookupSource.NAME;
            LogicalPlan found = ((LookupSource.Relation) table.relation()).leaf(name, session);
            return withOutput(found, (Seq) table.output());
        }

        /** The same node with other columns. */
        private static TreeNode withOutput(LogicalPlan node, Seq output) {
            ArrayList elements = new ArrayList();
            Iterator names = node.productElementNames();
            for (Iterator each = node.productIterator(); each.hasNext();) {
                Object element = each.next();
                elements.add("output".equals(names.next()) ? output : element);
            }
            return node.makeCopy(elements.toArray());
        }
    }
}
