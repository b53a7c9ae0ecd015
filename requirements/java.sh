#!/usr/bin/env bash
# Say whether Java is here for Spark; install Debian's where there is none and that can be done.
set -euo pipefail

if command -v java >/dev/null || [ -x "${JAVA_HOME:-}/bin/java" ]; then
    exit 0
fi
root=()
if [ "$(id -u)" != 0 ]; then
    root=(sudo -n)
fi
if ! command -v apt-get >/dev/null || ! "${root[@]}" true 2>/dev/null; then
    echo "No Java was found and none can be installed here, so the tests of Spark are skipped." >&2
    exit 1
fi
echo "Installing Debian's Java (a minute or two)." >&2
"${root[@]}" apt-get update -qq >&2
"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq --yes --no-install-recommends default-jre-headless >/dev/null
command -v java >/dev/null
