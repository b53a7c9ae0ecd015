#!/usr/bin/env bash
# Resolve requirements/*.lock anew: one file for every system and Python from 3.11 on, with hashes.
# Usage: requirements/lock.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"$1" -m venv "$tools"
"$tools/bin/pip" install -qq --disable-pip-version-check --requirement requirements/installer.in

compile() {
    "$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --upgrade \
        --generate-hashes --no-annotate --custom-compile-command 'make lock' "$@"
}
compile requirements/installer.in --output-file requirements/installer.lock
compile pyproject.toml requirements/build.in --output-file requirements/run.lock
# the same versions again, so that a development environment holds a run environment
compile pyproject.toml requirements/build.in --extra dev \
    --constraint requirements/run.lock --output-file requirements/dev.lock
compile pyproject.toml requirements/build.in --extra benchmark \
    --constraint requirements/run.lock --output-file requirements/benchmark.lock
compile pyproject.toml requirements/build.in --extra docs \
    --constraint requirements/run.lock --output-file requirements/docs.lock
compile pyproject.toml requirements/spark.in --extra spark \
    --constraint requirements/dev.lock --output-file requirements/spark.lock
