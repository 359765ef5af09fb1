"""Command line of the chaos run: python -m tests.chaos --minutes N --seed S. Exits with 1 on a violation."""

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
    parser.add_argument("--bulk", type=int, default=100, help="recipients of the largest batches; 0: no large batches")
    options = parser.parse_args()
    # On SIGTERM, still stop the started processes and unmount the disk.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logs = Path(tempfile.mkdtemp(prefix="postrider-chaos-"))
    print(f"seed {options.seed}, logs in {logs}", flush=True)
    report = run(logs, seed=options.seed, seconds=options.minutes * 60, bulk=options.bulk)
    print(report)
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
