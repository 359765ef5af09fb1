#!/bin/sh
# Print the Python to start with: $PYTHON, else the distribution's, else the first on the PATH that runs; 3.11 or newer.
# Distributions build theirs with the compiler's profile; in what version managers build a loop takes 1.4 times as long or
# more, and a tenth fewer requests are taken. Each is tried, not only looked up: the shims of version managers exist
# without a Python behind them.
distribution=
case ":$PATH:" in
    *:/usr/bin:*) distribution=/usr/bin/python3 ;;
esac
for python in ${PYTHON:+"$PYTHON"} $distribution python3.13 python3.12 python3.11 python3; do
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
