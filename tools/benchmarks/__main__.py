"""Benchmark runner, which writes the results to docs/figures.md.

    .venv/bin/python -m tools.benchmarks                 # all
    .venv/bin/python -m tools.benchmarks accept peers  # some; the others keep their earlier results
    .venv/bin/python -m tools.benchmarks --smoke         # the smallest size of each, two at a time; writes no results

Each benchmark is a separate process with a time limit; its section is written when it ends.
Requires Debian's packages wrk and postfix (installed if the user is root). Without a DATABASE_URL, whose user may
create databases, it starts a PostgreSQL that flushes to disk.
Exits with 1 when a benchmark failed or missed a target.
"""

import argparse
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.stack.stack import share_template
from tools.benchmarks.figures import MARK, BenchmarkFigure
from tools.benchmarks.sizes import SMOKE
from tools.embedded.secret_keys import generate_secrets
from tools.embedded.servers import postgres

REPOSITORY = Path(__file__).resolve().parents[2]
TABLE = REPOSITORY / "docs" / "figures.md"
# Generous for a machine with two cores; the order is that of docs/figures.md.
TIME_LIMITS_MINUTES = {
    "accept": 10,
    "submission": 10,
    "inbound": 15,
    "compat": 10,
    "batch": 5,
    "peers": 40,
    "budget": 10,
    "inbound.budget": 10,
    "backlog": 60,
    "pace": 60,
    "shares": 15,
    "streams": 10,
    "webhooks": 10,
    "lists": 40,
    "analytics": 40,
    "retention": 60,
    "erasures": 30,
    "growth": 120,
    "dashboard": 40,
    "pages": 10,
    "load": 60,
    "attachments": 10,
    "footprint": 10,
    "suite": 90,
}
# The arguments before the number of rounds, for benchmarks that take it.
ROUNDS_OPTIONS: dict[str, list[str]] = {"attachments": [], "compat": [], "peers": ["--rounds"]}
HEADER = """# Figures

Benchmark results, written by `python -m tools.benchmarks`. Each section is one run on one machine, which also runs
PostgreSQL, Redis, the load generator and any software used for comparison. Each ratio is between two results of the
same run. No test depends on these figures. [tools/benchmarks/](../tools/benchmarks/README.md) describes the benchmarks.
"""


@dataclass(frozen=True)
class BenchmarkRun:
    """The result of one benchmark; `failure` is a sentence, or empty. load: the load average before."""

    name: str
    figures: list[BenchmarkFigure]
    failure: str = ""
    load: float = field(default=0.0, compare=False)

    @property
    def is_ok(self) -> bool:
        return not self.failure and all("missed" not in figure.result for figure in self.figures)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.benchmarks", description="Run benchmarks and write docs/figures.md."
    )
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"one of {', '.join(TIME_LIMITS_MINUTES)}; default: all"
    )
    parser.add_argument("--rounds", type=int, help=f"of {' and '.join(sorted(ROUNDS_OPTIONS))}; default: theirs")
    parser.add_argument("--table", type=Path, default=TABLE, help="the file to write")
    parser.add_argument("--smoke", action="store_true", help="run the smallest size of each; write nothing")
    options = parser.parse_args()
    unknown = set(options.names) - set(TIME_LIMITS_MINUTES)
    if unknown:
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}")
    names = options.names or list(TIME_LIMITS_MINUTES)
    if options.smoke:
        os.environ[SMOKE] = "1"
    with environment():
        if options.smoke:
            return run_smoke(names)
        runs: list[BenchmarkRun] = []
        for name in names:
            print(f"== {name} ({len(runs) + 1} of {len(names)})", flush=True)
            more = [*ROUNDS_OPTIONS[name], str(options.rounds)] if options.rounds and name in ROUNDS_OPTIONS else []
            runs.append(run_benchmark(name, *more))
            update_table(options.table, runs[-1])
    print(f"written: {options.table}")
    return 0 if all(one.is_ok for one in runs) else 1


def run_smoke(names: list[str]) -> int:
    """Run benchmarks, two at a time; print the seconds of each, and the output of those that fail."""
    started = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        failed = [name for name, failure in zip(names, pool.map(smoke_failure, names), strict=True) if failure]
    print(f"{len(names)} benchmarks in {time.monotonic() - started:.0f} s. Failed: {', '.join(failed) or 'none'}.")
    return 1 if failed else 0


def smoke_failure(name: str) -> str:
    started, output = time.monotonic(), list[str]()
    failure = run_benchmark(name, show=output.append).failure
    seconds = f"{name}: {time.monotonic() - started:.0f} s"
    print(f"{''.join(output)}{seconds}. {failure}" if failure else seconds, flush=True)
    return failure


@contextmanager
def environment() -> Iterator[None]:
    """Set the required settings that are missing, and start a PostgreSQL unless DATABASE_URL names one.

    Each benchmark starts a separate Redis; the URL is only required.
    """
    for name, value in {"MODE": "embedded", "REDIS_URL": "redis://127.0.0.1:1/0", **generate_secrets()}.items():
        os.environ.setdefault(name, value)
    if "DATABASE_URL" in os.environ:
        yield
        return
    server = postgres.start_throw_away(settings={**postgres.DURABLE, "max_connections": "400"})
    os.environ["DATABASE_URL"] = server.url
    try:
        share_template()
        yield
    finally:
        del os.environ["DATABASE_URL"]
        server.stop()


def print_line(line: str) -> None:
    print(line, end="", flush=True)


def run_benchmark(name: str, *arguments: str, show: Callable[[str], object] = print_line) -> BenchmarkRun:
    """Run one benchmark and show the lines of its output that are no figures."""
    command = [sys.executable, "-m", f"tools.benchmarks.{name}", *arguments]
    load, figures = os.getloadavg()[0], []
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=REPOSITORY, **pipes) as process:
        # Like Ctrl-C, so that the benchmark stops its servers.
        limit = threading.Timer(TIME_LIMITS_MINUTES[name] * 60, process.send_signal, [signal.SIGINT])
        limit.start()
        for line in process.stdout or ():
            if found := BenchmarkFigure.parse(line):
                figures.append(found)
            else:
                show(line)
    # The timer thread is no longer alive once it has fired.
    was_in_time = limit.is_alive()
    limit.cancel()
    return BenchmarkRun(name, figures, _failure(process.returncode, figures, name, was_in_time=was_in_time), load)


def _failure(code: int, figures: list[BenchmarkFigure], name: str, *, was_in_time: bool) -> str:
    if not was_in_time:
        return f"Stopped after {TIME_LIMITS_MINUTES[name]} minutes."
    if code:
        return f"Failed with exit code {code}."
    return "" if figures else f"No figures were reported (no line starts with {MARK!r})."


def update_table(table: Path, run: BenchmarkRun) -> None:
    """Write the section of a run into the file, replacing the one of an earlier run."""
    text = table.read_text(encoding="utf-8") if table.exists() else ""
    sections = {part.partition("\n")[0]: part.rstrip("\n") for part in text.split("\n## ")[1:]}
    sections[run.name] = format_section(run)
    ordered = [sections[name] for name in TIME_LIMITS_MINUTES if name in sections]
    table.write_text("\n\n## ".join([HEADER.rstrip("\n"), *ordered]) + "\n", encoding="utf-8")


def format_section(run: BenchmarkRun) -> str:
    """Return the section of a run, from its name on."""
    lines = [
        run.name,
        "",
        f"{describe_machine()}, load average {run.load:.1f} before and {os.getloadavg()[2]:.1f} afterwards.",
        f"Measured on {datetime.now(UTC):%Y-%m-%d at %H:%M} UTC, commit {describe_commit()}.",
    ]
    lines += ["", run.failure] if run.failure else []
    lines += ["", "| measurement | result | target | |", "|---|---|---|---|"] if run.figures else []
    return "\n".join([*lines, *(figure.row for figure in run.figures)])


def describe_machine() -> str:
    """Return the cores, processor, memory and versions, without the host name."""
    cpu = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in cpu.read_text().splitlines() if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({names[0] if names else platform.machine()}), {memory:.0f} GiB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def describe_commit() -> str:
    """Return the measured commit; changes of the results file do not count."""
    name = _git("rev-parse", "--short", "HEAD") or "unknown"
    return f"{name} with uncommitted changes" if _git("status", "--porcelain", "--", ".", ":!docs/figures.md") else name


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
