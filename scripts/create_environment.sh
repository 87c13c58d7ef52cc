#!/bin/sh
# Make a virtual environment with the pinned dependencies and this project in it.
#
#   scripts/create_environment.sh .venv
#   scripts/create_environment.sh .venv-pyspark-4.1 requirements/pyspark-4.1.txt
#
# Nothing is installed that no hash in requirements/ vouches for.
set -eu

venv=$1
build_lock=requirements/build.txt
lock=${2:-requirements/dev.txt}

# Debian and Ubuntu split `ensurepip` off into the package python3-venv. Where
# it is missing, a pip outside can fill the environment (pip 22.3 or newer).
create() {
    echo "Making $venv with $("$python" --version)"
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        "$python" -m venv --clear "$venv"
    elif "$python" -m pip --python "$python" --version >/dev/null 2>&1 &&
        "$python" -m venv --clear --without-pip "$venv"; then
        "$python" -m pip --python "$venv/bin/python" install --quiet --require-hashes \
            -r "$build_lock"
    else
        echo "$python cannot make virtual environments: it lacks ensurepip and pip." >&2
        echo "On Debian or Ubuntu: apt-get install python3-venv" >&2
        return 1
    fi
}

# An environment that works is brought up to date, unless another Python is asked for.
if [ -n "${PYTHON:-}" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(scripts/find_python.sh)
    create
fi

# PySpark is published as source only. Its build must not fetch build tools on
# its own, so it uses those of $build_lock, and so does this project.
echo "Installing the pinned dependencies (the first time Spark alone is 450 MB)"
"$venv/bin/python" -m pip install --quiet --require-hashes -r "$build_lock"
"$venv/bin/python" -m pip install --quiet --require-hashes --no-build-isolation -r "$lock"
"$venv/bin/python" -m pip install --quiet --no-index --no-deps --no-build-isolation -e .
