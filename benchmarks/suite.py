"""Benchmark of the time that `bin/test --full` takes: checks, quick tests and full tests.

    .venv/bin/python -m benchmarks.suite

Prints the output of the run, and fails if the run does.
"""

import re
import subprocess
import sys
import time

from benchmarks.figures import record_figure
from benchmarks.footprint import user_environment
from embedded.locations import REPOSITORY

# pytest's last line of each run.
RESULT = re.compile(r"=+ .*?(\d+) passed.* in (\d+\.\d+)s")
# Targets of the whole run without the full tests, and with them.
QUICK_SECONDS, FULL_SECONDS = 360, 1200


def main() -> int:
    started = time.monotonic()
    runs = []
    with subprocess.Popen(
        [REPOSITORY / "bin" / "test", "--full"],
        env=user_environment(),
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            if result := RESULT.match(line):
                runs.append((int(result[1]), float(result[2]), time.monotonic() - started))
    if process.returncode:
        return process.returncode
    quick, quick_seconds, until_quick = runs[0]
    # Failed tests run again, as a run with fewer tests.
    full, full_seconds, until_full = max(runs[1:])
    record_figure("quick tests", quick)
    record_figure("quick tests, duration", quick_seconds, "s")
    record_figure("bin/test: checks and quick tests, duration", until_quick, "s", at_most=QUICK_SECONDS)
    record_figure("full tests", full)
    record_figure("full tests, duration", full_seconds, "s")
    record_figure("bin/test --full, duration", until_full, "s", at_most=FULL_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
