"""python -m tests.chaos --minutes N --seed S: a run of that length; ends with 1 when something is found."""

import argparse
import secrets
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="A seeded run of faults, then an audit.")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--bulk", type=int, default=100, help="recipients of the largest batches; 0: none are large")
    options = parser.parse_args()
    # Ended from outside, it still takes down what it has started and mounted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logs = Path(tempfile.mkdtemp(prefix="postrider-chaos-"))
    print(f"seed {options.seed}, logs in {logs}", flush=True)
    report = run(logs, seed=options.seed, seconds=options.minutes * 60, bulk=options.bulk)
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
