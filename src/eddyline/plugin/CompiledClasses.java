package eddyline.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/**
 * Classes that Python would have compiled here, from the jar; and those that were compiled, for whoever comes next.
 *
 * Py4J remembers methods by the names of classes: of each there may be one in a JVM, however often Python begins anew.
 * Those in the jar were compiled for one version of Spark, and are taken for that one only. They stand below
 * "compiled/", where no loader finds them but this one: another Spark's are compiled under the same names.
 */
public final class CompiledClasses extends ClassLoader {
    private static final Map KEPT = new HashMap();  // loaders by the names of sources
    private static final Properties ABOUT = about();

    private final Map codes;

    private CompiledClasses(ClassLoader parent, Map codes) {
        super(parent);
        this.codes = codes;
    }

    /** The version of Eddyline that the jar belongs to. */
    public static String version() {
        return ABOUT.getProperty("version", "");
    }

    /** A loader of what a source was compiled to; null where it has to be compiled. */
    public static synchronized ClassLoader loader(String source, ClassLoader parent, String spark) throws IOException {
        ClassLoader kept = (ClassLoader) KEPT.get(source);
        String names = ABOUT.getProperty("compiled." + source);
        if (kept != null || names == null || !spark.equals(ABOUT.getProperty("spark"))) {
            return kept;
        }
        Map codes = new HashMap();
        String[] each = names.split(",");
        for (int n = 0; n < each.length; n++) {
            codes.put(each[n], bytes("/compiled/" + each[n].replace('.', '/') + ".class"));
        }
        return keep(source, new CompiledClasses(parent, codes));
    }

    /** Keep what a source was compiled to; return what is kept, which another one may have been before. */
    public static synchronized ClassLoader keep(String source, ClassLoader compiled) {
        ClassLoader before = (ClassLoader) KEPT.get(source);
        if (before != null) {
            return before;
        }
        KEPT.put(source, compiled);
        return compiled;
    }

    protected Class findClass(String name) throws ClassNotFoundException {
        byte[] code = (byte[]) codes.get(name);
        if (code == null) {
            throw new ClassNotFoundException(name);
        }
        return defineClass(name, code, 0, code.length);
    }

    private static Properties about() {
        Properties about = new Properties();
        try {
            InputStream file = CompiledClasses.class.getResourceAsStream("/eddyline/spark/jar.properties");
            if (file != null) {
                about.load(file);
                file.close();
            }
        } catch (IOException error) {
            about.clear();  // as in a jar that tells nothing
        }
        return about;
    }

    private static byte[] bytes(String resource) throws IOException {
        InputStream file = CompiledClasses.class.getResourceAsStream(resource);
        if (file == null) {
            throw new IOException("the jar has no " + resource);
        }
        ByteArrayOutputStream read = new ByteArrayOutputStream();
        byte[] part = new byte[8192];
        for (int length = file.read(part); length >= 0; length = file.read(part)) {
            read.write(part, 0, length);
        }
        file.close();
        return read.toByteArray();
    }
}
