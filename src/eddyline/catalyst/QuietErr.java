package eddyline.catalyst;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;

/**
 * Standard error without what the Python process prints that plans a query with state.
 *
 * PySpark has it print each step that it takes, and Spark hands on what its Python processes print. Only lines of
 * theirs are looked at, and only these are left out, with the empty one after each: what they write to standard
 * error, tracebacks among it, and what all others write goes its way.
 *
 * Compiled by Janino when it is first needed: no lambdas, and generics are only decoration.
 */
public final class QuietErr extends PrintStream {
    private static final String READER = "stdout reader for ";
    private static final String[] STEPS = {
        "Starting Streaming TransformWithStateInPandas Python worker",
        "Streaming TransformWithStateInPandas Python worker ",
    };

    private final ThreadLocal lines = new ThreadLocal();

    public QuietErr() {
        super(System.err, true);
    }

    public void write(byte[] bytes, int start, int length) {
        if (!Thread.currentThread().getName().startsWith(READER)) {
            super.write(bytes, start, length);
            return;
        }
        Line line = (Line) lines.get();
        if (line == null) {
            line = new Line();
            lines.set(line);
        }
        for (int place = start; place < start + length; place++) {
            line.begun.write(bytes[place]);
            if (bytes[place] == '\n') {
                line.end(this);
            }
        }
        line.pass(this);
    }

    void passOn(byte[] bytes) {
        super.write(bytes, 0, bytes.length);
    }

    /** What a process has printed of a line so far. */
    private static final class Line {
        private final ByteArrayOutputStream begun = new ByteArrayOutputStream();
        private boolean afterStep = false;
        private boolean passing = false; // its beginning is out already

        private void end(QuietErr to) {
            String text = begun.toString();
            boolean step = !passing && isStep(text, false);
            if (!step && !(afterStep && !passing && text.trim().isEmpty())) {
                to.passOn(begun.toByteArray());
            }
            afterStep = step;
            passing = false;
            begun.reset();
        }

        /** Put out what is no step any more, whatever comes of the line. */
        private void pass(QuietErr to) {
            if (begun.size() > 0 && (passing || !isStep(begun.toString(), true))) {
                to.passOn(begun.toByteArray());
                passing = true;
                begun.reset();
            }
        }

        private static boolean isStep(String text, boolean maybe) {
            for (int which = 0; which < STEPS.length; which++) {
                if (text.startsWith(STEPS[which]) || maybe && STEPS[which].startsWith(text)) {
                    return true;
                }
            }
            return false;
        }
    }
}
