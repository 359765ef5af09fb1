"""`bin/test`: run the checks and the tests with throw-away servers."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tools.embedded.environment import enter_environment
from tools.embedded.locations import REPOSITORY
from tools.embedded.packages import install_package
from tools.embedded.processes.foreground import run_in_foreground
from tools.embedded.processes.signals import raise_on_signals
from tools.embedded.processes.supervisor import Supervisor
from tools.embedded.processes.watchdog import Watchdog
from tools.embedded.secret_keys import generate_secrets
from tools.embedded.servers import postgres, redis
from tools.embedded.servers.accounts import account_for
from tools.embedded.servers.binaries import find_postgres
from tools.embedded.servers.cluster import cluster_in
from tools.embedded.servers.server_directories import make_temporary_directory
from tools.embedded.servers.startup import supervise_server
from tools.embedded.test_results import (
    RESULTS,
    clean_commit,
    durations,
    failed_tests,
    junit_options,
    read_cases,
    record_proof,
)

OPTIONS = {"--full", "--long"}
# A file runs in one process, which shares its services among the tests. Files keep their order, so that both processes
# are in the same directory and stop its services after it.
TWO_PROCESSES = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
# The exit code of pytest when tests failed.
TESTS_FAILED = 1
# Tests that failed and passed when run again, alone. More are a fault of the change or of the tests.
MAX_REPEATED = 5


def test(arguments: list[str]) -> int:
    """Run bin/check, then pytest; return the exit code of the first that fails, else 0.

    --full adds the tests that need the whole stack, a browser or other programs; --long adds those that take minutes,
    and all examples of Hypothesis.
    """
    enter_environment("requirements-dev.txt")
    install_redis()
    # For the tests of pages.
    if arguments and not shutil.which("chromium"):
        install_package("chromium")
    raise_on_signals()
    server_directory = make_temporary_directory()
    supervisor = Supervisor(remove_at_end=server_directory)
    try:
        return _run_all(arguments, _start_servers(server_directory, supervisor), supervisor.watchdog)
    finally:
        supervisor.stop()


def install_redis() -> None:
    """Install Debian's Redis, which production uses, if the machine has none."""
    if not (shutil.which("redis-server") or shutil.which("valkey-server")):
        install_package("redis-server")


def _start_servers(server_directory: Path, supervisor: Supervisor) -> dict[str, str]:
    """Return the environment of the tests."""
    start_postgres = partial(postgres.start, server_directory, settings=postgres.THROW_AWAY)
    start_redis = partial(redis.start, server_directory)
    log = server_directory / "postgres.log"
    database = supervise_server(supervisor, postgres.POSTGRES, start_postgres, log=log)
    broker = supervise_server(supervisor, redis.REDIS, start_redis, log=server_directory / "redis.log")
    binaries = find_postgres(
        account=account_for(cluster_in(server_directory)), server_directory=server_directory, major=None
    )
    # Each process would compile all modules again, and pytest all tests: a third of the time of their collection.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **inherited,
        **generate_secrets(),
        "MODE": "embedded",
        "DATABASE_URL": database.url,
        "REDIS_URL": broker.url,
        "POSTRIDER_TEST_PG_BIN": str(binaries.directory),
        # Files that tests leave behind are removed with the servers' files.
        "TMPDIR": str(server_directory),
    }


def _run_all(arguments: list[str], environment: dict[str, str], watchdog: Watchdog) -> int:
    options = {argument for argument in arguments if argument in OPTIONS}
    paths = [argument for argument in arguments if argument not in OPTIONS]
    if options:
        environment = {**environment, "POSTRIDER_TEST_FULL": "1"}
    if "--long" in options:
        environment = {**environment, "POSTRIDER_TEST_LONG": "1"}
    run = partial(run_in_foreground, environment=environment, watchdog=watchdog)
    if paths:
        # bin/check does it otherwise.
        if code := run([sys.executable, str(REPOSITORY / "bin" / "clients.py")]):
            return code
        selection = [] if "--long" in options else ["-m", "not long"]
        return run_tests(run, [*selection, *paths], RESULTS / "paths.xml")
    commit = clean_commit()
    code = run([str(REPOSITORY / "bin" / "check")]) or run_all_tests(run, pytest_runs(options))
    if options:
        record_proof(before=commit, after=clean_commit(), has_passed=code == 0)
    return code


def run_all_tests(
    run: Callable[[list[str]], int], arguments: Mapping[str, list[str]], *, results: Path = RESULTS
) -> int:
    """Run pytest with each list of arguments, print the durations, and return the first exit code that is not 0.

    Tests that failed run once more, alone, since some wait for processes that share the machine with other tests
    (docs/decisions/0114). The run fails if one of them fails again, or if more than MAX_REPEATED ran again.

    arguments: the arguments by the name of the run.
    results: the directory of the result files; those of the last run are removed.
    """
    for file in (*results.glob("*.xml"), results / "repeated.txt"):
        file.unlink(missing_ok=True)
    repeated: list[str] = []
    code = 0
    files: dict[str, Path] = {}
    for name, options in arguments.items():
        files[name] = results / f"{name}.xml"
        code = run_tests(run, options, files[name])
        if code == TESTS_FAILED:
            print("Running the failed tests again, alone:", flush=True)
            repeated += [f"{name}: {test}" for test in failed_tests(read_cases(files[name]))]
            again = [*options, "-n", "0", "--last-failed", "--exitfirst", "--verbose"]
            files[f"{name}-repeated"] = results / f"{name}-repeated.xml"
            code = run_tests(run, again, files[f"{name}-repeated"])
        if code:
            break
    print(durations(files))
    _report_repeated(repeated, results / "repeated.txt")
    return code or (TESTS_FAILED if len(repeated) > MAX_REPEATED else 0)


def _report_repeated(repeated: list[str], file: Path) -> None:
    if repeated:
        file.write_text("".join(f"{line}\n" for line in repeated))
        print(f"\n{len(repeated)} tests failed and ran again (at most {MAX_REPEATED} may):", *repeated, sep="\n")


def run_tests(run: Callable[[list[str]], int], options: list[str], results: Path) -> int:
    # The caller's options come last, and so count if they name another file.
    return run([sys.executable, "-m", "pytest", *junit_options(results), *options])


def pytest_runs(options: set[str]) -> dict[str, list[str]]:
    """Return the arguments of each pytest run; runs of several processes come first (docs/decisions/0146).

    Only --long includes the long tests.
    """
    runs = {"quick": ["-n", str((os.cpu_count() or 1) + 1), "-m", "not full and not long"]}
    if options:
        runs["full"] = [*TWO_PROCESSES, "-m", "full and not alone and not long"]
        runs["alone"] = ["-m", "full and alone and not long"]
    if "--long" in options:
        runs["long"] = [*TWO_PROCESSES, "-m", "long and not alone"]
        runs["long-alone"] = ["-m", "long and alone"]
    return runs
