"""Command line of the chaos run: python3 -m tests.chaos --minutes N --seed S. Exits with 1 on a violation.

With --upgrade-from it upgrades the service from another commit instead.

Creates .venv and installs PostgreSQL and Redis if necessary, like bin/test.
"""

import argparse
import os
import secrets
import signal
import sys
import tempfile
from pathlib import Path

from tools.embedded.environment import enter_environment
from tools.embedded.errors import CannotStart
from tools.embedded.secret_keys import generate_secrets
from tools.embedded.test import install_redis


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.chaos", description="A seeded run of faults, then an audit."
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--bulk", type=int, default=100, help="recipients of the largest batches; 0: no large batches")
    parser.add_argument("--two-transports", action="store_true", help="send by two transports that fail in turn")
    parser.add_argument("--receiving", action="store_true", help="deliver email to workspaces instead of sending it")
    parser.add_argument(
        "--short-of-connections", action="store_true", help="with --receiving: half of the faults are such shortages"
    )
    parser.add_argument("--pace", action="store_true", help="send to receivers that slow, suspend and recover")
    parser.add_argument("--expiry", action="store_true", help="send emails that expire after 2 to 60 seconds")
    parser.add_argument("--upgrade-from", metavar="COMMIT", help="instead of faults: upgrade from this commit")
    parser.add_argument("--events", type=int, default=1_000_000, help="events in the database before the upgrade")
    options = parser.parse_args()
    try:
        enter_environment("requirements-dev.txt", module="tests.chaos")
        install_redis()
    except CannotStart as error:
        sys.exit(str(error))
    # Each stack has a separate Redis; the settings require a URL for the commands before it starts.
    os.environ.update(generate_secrets(), MODE="embedded", REDIS_URL="redis://127.0.0.1")
    # Needs the packages of .venv.
    from tests.chaos.run import run, run_expiry, run_pace, run_receiving
    from tests.chaos.upgrade import run_upgrade

    # On SIGTERM, still stop the started processes and unmount the disk.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logs = Path(tempfile.mkdtemp(prefix="postrider-chaos-"))
    if options.upgrade_from:
        violations = run_upgrade(logs, commit=options.upgrade_from, events=options.events)
        print("\n".join([*violations[:40], f"{len(violations)} violations"]))
        return 1 if violations else 0
    print(f"seed {options.seed}, logs in {logs}", flush=True)
    if options.receiving:
        report = run_receiving(
            logs,
            seed=options.seed,
            seconds=options.minutes * 60,
            is_short_of_connections=options.short_of_connections,
        )
    elif options.pace:
        report = run_pace(logs, seed=options.seed, seconds=options.minutes * 60)
    elif options.expiry:
        report = run_expiry(logs, seed=options.seed, seconds=options.minutes * 60)
    else:
        report = run(
            logs,
            seed=options.seed,
            seconds=options.minutes * 60,
            bulk=options.bulk,
            has_two_transports=options.two_transports,
        )
    print(report)
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
