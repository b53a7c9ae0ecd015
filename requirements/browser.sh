#!/usr/bin/env bash
# Print the path of a Chromium; install Debian's where there is none and that can be done.
# CONGENIAL_BROWSER names another.
set -euo pipefail

find_browser() {
    local name
    for name in ${CONGENIAL_BROWSER:-chromium chromium-browser google-chrome chrome}; do
        if command -v "$name"; then
            return
        fi
    done
    return 1
}

if find_browser; then
    exit 0
fi
root=()
if [ "$(id -u)" != 0 ]; then
    root=(sudo -n)
fi
if [ -n "${CONGENIAL_BROWSER:-}" ] || ! command -v apt-get >/dev/null ||
    ! "${root[@]}" true 2>/dev/null; then
    echo "No Chromium was found and none can be installed here; install one, or name it:" \
        "make CONGENIAL_BROWSER=/path/to/chromium test-browser" >&2
    exit 1
fi
echo "Installing Debian's chromium and a font (a minute or two)." >&2
"${root[@]}" apt-get update -qq >&2
"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null
find_browser
