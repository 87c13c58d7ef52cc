#!/bin/sh
# Print the Python to make the environment with: $PYTHON if that is set, else the
# newest tested one on PATH.
set -eu

is_new_enough() {
    # A name on PATH may be a launcher without a Python behind it, so it has to run.
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

if [ -n "${PYTHON:-}" ]; then
    is_new_enough "$PYTHON" && echo "$PYTHON" && exit
    echo "PYTHON=$PYTHON is no Python 3.11 or newer." >&2
    exit 1
fi

# 3.11 to 3.13 are tested. A still newer one is worth a try, so the bare names come last.
for candidate in python3.13 python3.12 python3.11 python3 python; do
    is_new_enough "$candidate" && echo "$candidate" && exit
done
echo "No Python 3.11 or newer on PATH. Install one, or say: make PYTHON=/path/to/python" >&2
exit 1
