package eddyline.catalyst;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Collection;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's files of this machine, with permissions set by Java.
 *
 * Without its native library Hadoop starts a process, chmod, for each file that it creates, and for the checksum
 * beside it. All else is Hadoop's own.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class LocalFiles extends LocalFileSystem {
    private static final URI LOCAL = URI.create("file:///");
    private static final String[] USUAL = {
        "org.apache.hadoop.fs.LocalFileSystem",
        "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem",
    };

    public LocalFiles() {
        super(new Raw());
    }

    /** Have all that ask for local files from now on get these; true where they do. */
    public boolean use(Configuration settings) throws IOException, ReflectiveOperationException {
        FileSystem known = FileSystem.get(LOCAL, settings);
        if (isOurs(known)) {
            return true;
        }
        if (!isUsual(known) || hasToDelete(known)) {
            return false;
        }
        Configuration ours = new Configuration(settings);
        ours.setClassLoader(getClass().getClassLoader());
        ours.set("fs.file.impl", getClass().getName());
        known.close(); // out of Hadoop's cache: who has it goes on with it
        return isOurs(FileSystem.get(LOCAL, ours));
    }

    private boolean isOurs(FileSystem system) {
        return system.getClass().getName().equals(getClass().getName()); // maybe of another loader
    }

    private static boolean isUsual(FileSystem system) {
        for (int which = 0; which < USUAL.length; which++) {
            if (system.getClass().getName().equals(USUAL[which])) {
                return true;
            }
        }
        return false;
    }

    /** Whether somebody wants files deleted when it is closed. */
    private static boolean hasToDelete(FileSystem system) throws ReflectiveOperationException {
        Field paths = FileSystem.class.getDeclaredField("deleteOnExit");
        paths.setAccessible(true);
        return !((Collection) paths.get(system)).isEmpty();
    }

    /** The files without their checksums. */
    public static final class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) { // which Java does not know
                super.setPermission(path, permission);
                return;
            }
            java.nio.file.Path file = pathToFile(path).toPath();
            try {
                Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(permission.toString()));
            } catch (UnsupportedOperationException unknown) {
                super.setPermission(path, permission);
            }
        }
    }
}
