"""Run benchmarks one after another and write their figures into docs/figures.md.

    .venv/bin/python -m benchmarks                 # all
    .venv/bin/python -m benchmarks accept sending  # some; the others keep what an earlier run told

Each is a process of its own with a limit of time; its output is shown as it comes, its section written as it ends.
Needs what the single ones need: DATABASE_URL of a server on which databases may be created, wrk, and Debian's postfix.
Ends with 1 when one broke or an aim was missed.
"""

import argparse
import os
import platform
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.figures import MARK, Figure

REPOSITORY = Path(__file__).resolve().parents[1]
TABLE = REPOSITORY / "docs" / "figures.md"
# Minutes that each may take, by a machine of two cores with room; the order is that of the table.
MINUTES = {
    "accept": 10,
    "batch": 5,
    "sending": 30,
    "backlog": 60,
    "webhooks": 10,
    "lists": 40,
    "analytics": 40,
    "retention": 60,
    "dashboard": 40,
    "load": 60,
}
HEAD = """# Figures

Written by `python -m benchmarks`: what this service does on one machine, beside its peers where it has any. A section
is one run; a ratio is of two figures of that run. The machine runs everything at once: the service, PostgreSQL, Redis,
the peers and what makes the load. Nothing here decides a test; [benchmarks/](../benchmarks/README.md) says what each
measures.
"""


@dataclass(frozen=True)
class Run:
    """What came of one benchmark; trouble is a sentence, or empty."""

    name: str
    figures: list[Figure]
    trouble: str = ""

    @property
    def is_well(self) -> bool:
        return not self.trouble and all("missed" not in figure.verdict for figure in self.figures)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks, write docs/figures.md.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(MINUTES)}; all without one")
    parser.add_argument("--table", type=Path, default=TABLE, help="where to write to")
    options = parser.parse_args()
    unknown = set(options.names) - set(MINUTES)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    runs = []
    for name in options.names or MINUTES:
        runs.append(run(name))
        renew(options.table, runs[-1])
    print(f"written: {options.table}")
    return 0 if all(one.is_well for one in runs) else 1


def run(name: str) -> Run:
    """Run one, and pass its output on."""
    print(f"== {name}", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    figures = []
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        # As by Ctrl-C, so that it takes down the servers that it has started.
        limit = threading.Timer(MINUTES[name] * 60, process.send_signal, [signal.SIGINT])
        limit.start()
        for line in process.stdout or ():
            if found := Figure.read(line):
                figures.append(found)
            else:
                print(line, end="", flush=True)
    # Not alive any more once the time was up.
    was_in_time = limit.is_alive()
    limit.cancel()
    return Run(name, figures, _trouble(process.returncode, figures, name, was_in_time=was_in_time))


def _trouble(code: int, figures: list[Figure], name: str, *, was_in_time: bool) -> str:
    if not was_in_time:
        return f"It was ended after {MINUTES[name]} minutes."
    if code:
        return f"It ended with {code}."
    return "" if figures else f"It told no figure ({MARK!r} begins none of its lines)."


def renew(table: Path, run: Run) -> None:
    """Put a run's section into the table, in the place of what an earlier one told."""
    told = table.read_text(encoding="utf-8") if table.exists() else ""
    sections = {part.partition("\n")[0]: part.rstrip("\n") for part in told.split("\n## ")[1:]}
    sections[run.name] = section(run)
    ordered = [sections[name] for name in MINUTES if name in sections]
    table.write_text("\n\n## ".join([HEAD.rstrip("\n"), *ordered]) + "\n", encoding="utf-8")


def section(run: Run) -> str:
    """Return what the table says of a run, from its name on."""
    lines = [run.name, "", f"{machine()}. {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit()}."]
    lines += ["", run.trouble] if run.trouble else []
    lines += ["", "| what | figure | aim | |", "|---|---|---|---|"] if run.figures else []
    return "\n".join([*lines, *(figure.row for figure in run.figures)])


def machine() -> str:
    """Describe it without its name: cores, processor, memory, load, versions."""
    cpu = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in cpu.read_text().splitlines() if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({names[0] if names else platform.machine()}), {memory:.0f} GiB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"load of the machine afterwards {os.getloadavg()[2]:.1f}"
    )


def commit() -> str:
    """Name what was measured; the table itself is no part of it."""
    name = _git("rev-parse", "--short", "HEAD") or "unknown"
    return f"{name}, changed" if _git("status", "--porcelain", "--", ".", ":!docs/figures.md") else name


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
