"""Benchmark of the time that `bin/test --full` takes: checks, quick tests and full tests.

    .venv/bin/python -m tools.benchmarks.suite

Prints the output of the run, and fails if the run does.
"""

import re
import subprocess
import sys
import time

from tools.benchmarks.figures import record_figure
from tools.benchmarks.footprint import user_environment
from tools.benchmarks.sizes import size
from tools.embedded.locations import REPOSITORY

# pytest's last line of each run.
RESULT = re.compile(r"=+ .*?(\d+) passed.* in (\d+\.\d+)s")
# Printed before failed tests run again, which is not another run.
AGAIN = "Running the failed tests again"
# All tests, or in a smoke run those of one file.
PATHS = size([], smoke=["tests/core/lib/test_ids.py"])
# Targets of the whole run without the full tests, and with them.
QUICK_SECONDS, FULL_SECONDS = 360, 1200


def main() -> int:
    started = time.monotonic()
    runs = []
    is_repeated = False
    with subprocess.Popen(
        [REPOSITORY / "bin" / "test", "--full", *PATHS],
        env=user_environment(),
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            is_repeated |= line.startswith(AGAIN)
            if result := RESULT.match(line):
                runs += [] if is_repeated else [(int(result[1]), float(result[2]), time.monotonic() - started)]
                is_repeated = False
    until_full = time.monotonic() - started
    if process.returncode:
        return process.returncode
    (quick, quick_seconds, until_quick), *full_runs = runs
    record_figure("quick tests", quick)
    record_figure("quick tests, duration", quick_seconds, "s")
    record_figure("bin/test: checks and quick tests, duration", until_quick, "s", at_most=QUICK_SECONDS)
    record_figure("full tests", sum(tests for tests, _, _ in full_runs))
    record_figure("full tests, duration", sum(seconds for _, seconds, _ in full_runs), "s")
    record_figure("bin/test --full, duration", until_full, "s", at_most=FULL_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
