#!/bin/sh
# Print the Python to start with: $PYTHON, else the first on the PATH that runs and is 3.11 or newer.
# It is tried, not only looked up: the shims of version managers exist without a Python behind them.
for python in ${PYTHON:+"$PYTHON"} python3.13 python3.12 python3.11 python3; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        command -v "$python"
        exit 0
    fi
    if [ -n "${PYTHON:-}" ]; then
        echo "PYTHON=$PYTHON is not a Python 3.11 or newer: name another one, or unset it." >&2
        exit 1
    fi
done
echo "Postrider needs Python 3.11 or newer, and none was found: install one (Debian: apt install python3)." >&2
exit 1
