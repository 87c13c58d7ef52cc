package eddyline.catalyst;

import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.Lock;
import py4j.CallbackClient;
import py4j.ClientServerConnection;
import py4j.PythonClient;

/**
 * The connections into Python that threads of the JVM have, closed when their threads have ended.
 *
 * Py4J opens one for each thread that calls Python, as for a function of foreachBatch, and keeps it when the thread
 * is gone, with a thread of Python's at its other end. This takes the place of what tells threads their connections;
 * when a thread gets one, and when it is told to, those of threads that have ended are closed.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class ThreadConnections extends ThreadLocal {
    private final ThreadLocal before;  // knows the connections that are there already
    private final Deque idle;
    private final Lock changing;
    private final Map threads = new ConcurrentHashMap();  // by connection

    private ThreadConnections(ThreadLocal before, Deque idle, Lock changing) {
        this.before = before;
        this.idle = idle;
        this.changing = changing;
    }

    /** Take care of the connections that this client will open; null where it has no such connections. */
    public static ThreadConnections of(Object client) {
        if (!(client instanceof PythonClient)) {
            return null;
        }
        try {
            Field own = field(PythonClient.class, "threadConnection");
            ThreadLocal before = (ThreadLocal) own.get(client);
            if (before instanceof ThreadConnections) {
                return (ThreadConnections) before;
            }
            Deque idle = (Deque) field(CallbackClient.class, "connections").get(client);
            Lock changing = (Lock) field(CallbackClient.class, "lock").get(client);
            ThreadConnections made = new ThreadConnections(before, idle, changing);
            own.set(client, made);
            return made;
        } catch (ReflectiveOperationException another) {  // a Py4J that keeps them elsewhere
            return null;
        } catch (RuntimeException closed) {  // or that is not to be looked into
            return null;
        }
    }

    private static Field field(Class owner, String name) throws NoSuchFieldException {
        Field found = owner.getDeclaredField(name);
        found.setAccessible(true);
        return found;
    }

    public Object get() {
        Object own = super.get();
        return own == null ? before.get() : own;
    }

    public void set(Object reference) {
        super.set(reference);
        Object connection = ((WeakReference) reference).get();
        if (connection != null && ((ClientServerConnection) connection).isInitiatedFromClient()) {
            closeThoseLeft();
            threads.put(connection, Thread.currentThread());
        }
    }

    /** Close the connections of threads that have ended. */
    public void closeThoseLeft() {
        ArrayList connections = new ArrayList(threads.keySet());
        for (int n = 0; n < connections.size(); n++) {
            ClientServerConnection connection = (ClientServerConnection) connections.get(n);
            Thread thread = (Thread) threads.get(connection);
            // Of two threads that close at once, one finds it gone.
            if (thread == null || thread.isAlive() || threads.remove(connection) == null) {
                continue;
            }
            changing.lock();
            try {
                idle.remove(connection);
            } finally {
                changing.unlock();
            }
            connection.shutdown();
        }
    }
}
