#!/usr/bin/env bash
# Make .venv hold what a lock file names, and this package; do nothing where it already does.
# The benchmarks and the site have environments of their own in it: .venv/benchmark, .venv/docs.
# spark adds PySpark to the environment of the tests: 450 MB, which few need.
# Usage: requirements/environment.sh run|dev|spark|benchmark|docs
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$1" = spark ]; then
    requirements/environment.sh dev
    stamp=.venv/installed-spark
    wanted=$(cksum <requirements/spark.lock)
    if [ "$(cat $stamp 2>/dev/null)" = "$wanted" ]; then
        exit 0
    fi
    echo "Adding PySpark to .venv from requirements/spark.lock (450 MB, a minute or two)."
    # PySpark alone is published without a wheel; what builds it is locked, too
    .venv/bin/uv pip install --quiet --python .venv/bin/python --require-hashes \
        --only-binary :all: --no-binary pyspark --build-constraints requirements/spark.lock \
        --requirement requirements/spark.lock
    echo "$wanted" >$stamp
    exit 0
fi

lock=requirements/$1.lock
home=.venv
if [ "$1" = benchmark ] || [ "$1" = docs ]; then
    home=.venv/$1
fi
stamp=$home/installed

fits() {
    "$1" - 2>/dev/null <<'PYTHON'
import ensurepip, sys, venv
raise SystemExit(not (3, 11) <= sys.version_info[:2] <= (3, 14))
PYTHON
}

find_python() {
    local name
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
        if fits "$name"; then
            echo "$name"
            return
        fi
    done
    if [ -n "${PYTHON:-}" ]; then
        echo "PYTHON=$PYTHON is not a Python from 3.11 to 3.14 with venv and pip; name another." >&2
    else
        echo "No Python from 3.11 to 3.14 with venv and pip was found; install one (on Debian:" \
            "python3 and python3-venv), or name it: make PYTHON=/path/to/python3.12 ..." >&2
    fi
    return 1
}

# What it was made from: a lock file and this folder, since its scripts hold the folder's path.
wanted() { { pwd; cat "requirements/$1.lock"; } | cksum; }

installed() {
    grep -qsxF "$1 $(wanted "$1")" "$stamp" && $home/bin/python -c 'import congenial' 2>/dev/null &&
        { [ -z "${PYTHON:-}" ] || [ "$($home/bin/python --version)" = "$("$PYTHON" --version)" ]; }
}

if [ -n "${PYTHON:-}" ]; then
    find_python >/dev/null
fi

# the development lock holds every version of the run lock
if installed "$1" || { [ "$1" = run ] && installed dev; }; then
    exit 0
fi

python=$(find_python)
echo "Setting up $home with $("$python" --version) from $lock" \
    "(the first time this downloads its packages, a minute or two)."
# an environment of another lock, folder or Python leaves nothing behind
"$python" -m venv --clear $home
checked=(--require-hashes --only-binary :all: --requirement)
pip=($home/bin/python -m pip install --quiet --quiet --disable-pip-version-check)
# uv takes a fifth of pip's time; where it finds no registry, as behind some mirrors, pip may
if ! { "${pip[@]}" "${checked[@]}" requirements/installer.lock &&
    $home/bin/uv pip install --quiet --python $home/bin/python "${checked[@]}" "$lock"; } 2>/dev/null; then
    "${pip[@]}" "${checked[@]}" "$lock"
fi
"${pip[@]}" --no-deps --no-build-isolation --editable .
echo "$1 $(wanted "$1")" >"$stamp"
echo "Ready: $home holds congenial and what it needs."
