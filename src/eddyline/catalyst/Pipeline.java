package eddyline.catalyst;

import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.util.Utils;
import py4j.reflection.MethodInvoker;
import py4j.reflection.ReflectionEngine;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * Makes calls that Python has put off, many in one crossing; see pipeline.py.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 * What a call returns stays here, in a slot that Python has numbered. One that fails leaves its
 * error there, and so do the calls that need what it should have returned: whoever asks for one of
 * these gets the error; all others go on. The one thread of Python's that owns a pipeline runs it.
 */
public final class Pipeline {
    /** Characters of one answer: Py4J takes 40 ms longer for one beyond 8 KB. */
    private static final int PIECE = 7000;

    private final HashMap slots = new HashMap();
    private final ReflectionEngine engine = new ReflectionEngine();
    private String text;
    private String program;
    private int at;
    /** What the call that is being read needs and has not got. */
    private Failed needed;

    /** Run a program; return what is in a slot then, a text with a mark in front of it. */
    public Object run(String calls, int wanted) throws Throwable {
        program = calls;
        at = 0;
        while (at < program.length()) {
            step(program.charAt(at++));
        }
        program = null;
        Object value = slots.get(wanted);
        if (value instanceof Failed) {
            throw ((Failed) value).error;
        }
        return value instanceof String ? firstPiece((String) value) : value;
    }

    /** Put something into a slot that came by another way. */
    public void put(int slot, Object value) {
        slots.put(slot, value);
    }

    /** Return the text that was begun from some character on, again with a mark in front. */
    public String textFrom(int start) {
        int end = Math.min(start + PIECE, text.length());
        boolean more = end < text.length();
        if (more && Character.isHighSurrogate(text.charAt(end - 1))) {
            end--;
        }
        return (more ? "+" : "=") + text.substring(start, end);
    }

    private String firstPiece(String whole) {
        text = whole;
        return textFrom(0);
    }

    private void step(char kind) {
        if (kind == 'D') {
            slots.remove(number());
            return;
        }
        int slot = number();
        String type = kind == 'M' ? null : word();
        needed = null;
        Object target = kind == 'M' ? argument() : null;
        String name = kind == 'C' ? null : word();
        Object[] arguments = arguments();
        Object value = needed;
        if (value == null) {
            try {
                value = call(target, method(kind, type, target, name, arguments), arguments);
            } catch (Throwable error) {
                value = new Failed(error);
            }
        }
        slots.put(slot, value);
    }

    private MethodInvoker method(char kind, String type, Object target, String name, Object[] arguments) {
        switch (kind) {
            case 'C': return engine.getConstructor(type, arguments);
            case 'M': return engine.getMethod(target, name, arguments);
            case 'S': return engine.getMethod(Utils.classForName(type, true, false), name, engine.getClassParameters(arguments));
            default: throw new IllegalStateException("no such call: " + kind);
        }
    }

    private Object call(Object target, MethodInvoker method, Object[] arguments) throws Throwable {
        try {
            Object value = engine.invoke(target, method, arguments);
            return value == ReflectionEngine.RETURN_VOID ? null : value;
        } catch (RuntimeException wrapped) {
            Throwable cause = wrapped.getCause();
            while (cause instanceof java.lang.reflect.InvocationTargetException) {
                cause = cause.getCause();
            }
            throw cause == null ? wrapped : cause;
        }
    }

    private Object[] arguments() {
        Object[] found = new Object[number()];
        for (int n = 0; n < found.length; n++) {
            found[n] = argument();
        }
        return found;
    }

    private Object argument() {
        char kind = program.charAt(at++);
        switch (kind) {
            case 'r': return held(number());
            case 'i': return Integer.valueOf(number());
            case 'j': return Long.valueOf(digits());
            case 's': return word();
            case 't': return Boolean.TRUE;
            case 'f': return Boolean.FALSE;
            case 'n': return null;
            case 'y': return Base64.getDecoder().decode(word());
            case 'l': return list();
            case 'q': return sequence();
            default: throw new IllegalStateException("no such argument: " + kind);
        }
    }

    private Object held(int slot) {
        Object value = slots.get(slot);
        if (value instanceof Failed && needed == null) {
            needed = (Failed) value;
        }
        return value;
    }

    private ArrayList list() {
        int size = number();
        ArrayList found = new ArrayList(size);
        for (int n = 0; n < size; n++) {
            found.add(argument());
        }
        return found;
    }

    private Object sequence() {
        ArrayList found = list();
        return found.isEmpty() ? Nil$.MODULE$ : PythonUtils.toSeq(found);
    }

    private int number() {
        return Integer.parseInt(digits());
    }

    private String digits() {
        int end = program.indexOf(';', at);
        String found = program.substring(at, end);
        at = end + 1;
        return found;
    }

    private String word() {
        int length = number();
        String found = program.substring(at, at + length);
        at += length;
        return found;
    }

    /** What stands in a slot in place of what a call should have returned. */
    private static final class Failed {
        final Throwable error;

        Failed(Throwable error) {
            this.error = error;
        }
    }
}
