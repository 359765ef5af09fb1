"""`bin/test`: check and test everything against throw-away servers."""

import os
import shutil
import sys
from functools import partial
from pathlib import Path

from embedded.environment import enter_environment
from embedded.locations import REPOSITORY
from embedded.packages import install_package
from embedded.processes.attended import run_attended
from embedded.processes.signals import held, only_note_signals, raise_on_signals
from embedded.processes.watchdog import Watchdog
from embedded.secret_keys import make_secrets
from embedded.servers import postgres, redis
from embedded.servers.accounts import account_for
from embedded.servers.binaries import find_postgres
from embedded.servers.cluster import cluster_in
from embedded.servers.homes import make_temporary_home
from embedded.servers.server import Server


def test(arguments: list[str]) -> int:
    """Return the exit code of pytest, or of the checks before it when they fail."""
    enter_environment("requirements-dev.txt")
    _get_redis()
    _get_browser()
    raise_on_signals()
    home = make_temporary_home()
    watchdog = Watchdog()
    watchdog.remove_at_end(home)
    servers: list[Server] = []
    try:
        _start(servers, home, watchdog)
        return _run_all(arguments, _environment(servers, home), watchdog)
    finally:
        only_note_signals()
        for server in servers:
            server.stop()
            watchdog.forget(server.pid)
        watchdog.dismiss()


def _get_redis() -> None:
    """Prefer the Redis that a machine has or Debian packages: it is what production runs."""
    if not (shutil.which("redis-server") or shutil.which("valkey-server")):
        install_package("redis-server")


def _get_browser() -> None:
    """The dashboard's pages are tested in a real browser."""
    if not shutil.which("chromium"):
        install_package("chromium")


def _start(servers: list[Server], home: Path, watchdog: Watchdog) -> None:
    starts = (
        partial(postgres.start, home, settings=postgres.THROW_AWAY),
        partial(redis.start, home),
    )
    for start in starts:
        with held():
            server = start()
            servers.append(server)
            watchdog.watch(server.pid, server.ladder, stage=1)


def _environment(servers: list[Server], home: Path) -> dict[str, str]:
    database, broker = servers
    binaries = find_postgres(account=account_for(cluster_in(home)), home=home, major=None)
    return {
        **os.environ,
        **make_secrets(),
        "MODE": "embedded",
        "DATABASE_URL": database.url,
        "REDIS_URL": broker.url,
        "POSTRIDER_TEST_PG_BIN": str(binaries.directory),
        # What tests leave behind goes away with the servers' files.
        "TMPDIR": str(home),
    }


def _run_all(arguments: list[str], environment: dict[str, str], watchdog: Watchdog) -> int:
    chosen = [argument for argument in arguments if argument != "--long"]
    check = REPOSITORY / "bin" / "check"
    if not chosen and check.exists():
        code = run_attended([str(check)], environment=environment, watchdog=watchdog)
        if code:
            return code
    marks = [] if "--long" in arguments else ["-m", "not long"]
    command = [sys.executable, "-m", "pytest", *marks, *chosen]
    return run_attended(command, environment=environment, watchdog=watchdog)
