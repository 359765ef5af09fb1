"""Benchmark of the idle footprint: memory and processor time of `bin/run`, and of web, worker and beat alone.

    .venv/bin/python -m tools.benchmarks.footprint [seconds]

Prints a row for each process, then for all, and records the memory of each. Memory is PSS, in which a page shared by
two processes counts half for each. Web, worker and beat run with the packages of production (docs/decisions/0147) and
compiled code, as in the container image.
Requires Linux, an index of packages for pip, and DATABASE_URL of a server on which databases may be created (it is not
counted).
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.stack.stack import free_port, running_stack
from tools.benchmarks.figures import record_figure
from tools.benchmarks.sizes import size
from tools.embedded.locations import REPOSITORY

# Start-up work, such as the first run of each periodic task, is over.
SETTLE_SECONDS = size(40, smoke=1)
PRODUCTION = ("web", "worker", "beat")
SET_BY_BIN_RUN = ("DATABASE_URL", "REDIS_URL", "MODE", "SECRET_KEY", "APP_KEYS", "DATA_DIR", "PORT", "PUBLIC_URL")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class ProcessUsage:
    """One process: its memory and its processor time so far, which includes that of its exited children."""

    command: str
    pss_mb: float
    cpu_seconds: float

    @property
    def program(self) -> str:
        """The program without its directory, interpreter, options and connection details."""
        words = [Path(word).name for word in self.command.replace(":", " ").split()]
        names = [word for word in words if not word.startswith(("-", "python"))]
        return " ".join(names[: 2 if names[0] in {"postrider", "postgres"} else 1]) if names else self.command


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else size(120, smoke=1)
    with running_service() as pid:
        record_idle("bin/run", [pid], seconds=seconds, max_mb=450)
    with running_production() as pids:
        record_idle("web, worker and beat", pids, seconds=seconds, max_mb=300)


def record_idle(name: str, roots: list[int], *, seconds: float, max_mb: int) -> None:
    """Measure the processes and their descendants over the given time, print a table and record the figures."""
    time.sleep(SETTLE_SECONDS)
    before = read_usage(roots)
    time.sleep(seconds)
    after = read_usage(roots)
    used = {pid: one.cpu_seconds - before[pid].cpu_seconds for pid, one in after.items() if pid in before}
    print(f"\n{name}, idle for {seconds:.0f} s\n\n  PSS/MB  CPU/s  process")
    for pid, one in sorted(after.items()):
        print(f"{one.pss_mb:8.1f}  {used.get(pid, 0):5.2f}  {one.command[:90]}")
    total_mb = sum(one.pss_mb for one in after.values())
    percent = 100 * (total(after) - total(before)) / seconds
    print(f"{total_mb:8.1f}  {percent * seconds / 100:5.2f}  total, {len(after)} processes", flush=True)
    for label, pss_mb in by_program(after.values()).items():
        record_figure(f"idle memory of {name}: {label}", pss_mb, unit="MB")
    record_figure(f"idle memory of {name} (PSS)", total_mb, unit="MB", at_most=max_mb)
    record_figure(f"idle processor time of {name}", percent, unit="% of a core", at_most=1)


def by_program(usages: Iterable[ProcessUsage]) -> dict[str, float]:
    """Return the memory of each process, by a name that is the same in every run."""
    numbered: Counter[str] = Counter()
    memory = {}
    for usage in sorted(usages, key=lambda one: one.program):
        numbered[usage.program] += 1
        memory[f"{usage.program} {numbered[usage.program]}"] = usage.pss_mb
    return memory


def total(usage: dict[int, ProcessUsage]) -> float:
    return sum(one.cpu_seconds for one in usage.values())


def user_environment() -> dict[str, str]:
    """Return the environment without the settings of the benchmark, which `bin/run` and `bin/test` set."""
    return {name: text for name, text in os.environ.items() if name not in SET_BY_BIN_RUN}


@contextmanager
def running_service() -> Iterator[int]:
    """Run `bin/run` with a new database; yield its process id once it has printed its example request."""
    with tempfile.TemporaryDirectory() as folder:
        environment = user_environment() | {"DATA_DIR": folder, "PORT": str(free_port())}
        with subprocess.Popen([REPOSITORY / "bin" / "run"], env=environment, stdout=subprocess.PIPE, text=True) as run:
            try:
                assert run.stdout
                assert any("Ctrl-C" in line for line in run.stdout), "bin/run has ended"
                yield run.pid
            finally:
                run.terminate()
                run.wait()


@contextmanager
def running_production() -> Iterator[list[int]]:
    """Run web, worker and beat as in the Procfile; yield their process ids."""
    procfile = dict(line.split(": ", 1) for line in (REPOSITORY / "Procfile").read_text().splitlines())
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack, ExitStack() as cleanup:
        environment = {name: text for name, text in stack.environment.items() if name != "WEB_CONCURRENCY"}
        # As for a command in a shell that has activated the environment.
        programs = install_production(Path(folder) / "venv")
        compile_code(programs)
        environment["PATH"] = f"{programs}:{environment['PATH']}"
        processes = [
            cleanup.enter_context(subprocess.Popen(shlex.split(procfile[name]), cwd=REPOSITORY, env=environment))
            for name in PRODUCTION
        ]
        for process in processes:
            cleanup.callback(process.terminate)
        yield [process.pid for process in processes]


def install_production(folder: Path) -> Path:
    """Install the packages of production in a new virtual environment; return the directory of its programs.

    Some of these packages load packages of development where they are installed. PSS would also divide the libraries
    of this environment among other programs that run in it.
    """
    return create_environment(folder, "--require-hashes", "--requirement", str(REPOSITORY / "requirements.txt"))


def create_environment(folder: Path, *packages: str) -> Path:
    """Install packages in a new virtual environment, from the cache of uv; return the directory of its programs."""
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    install = [uv, "pip", "install", "--quiet", "--link-mode", "copy", "--python", str(folder / "bin" / "python")]
    subprocess.run([*install, *packages], check=True)
    return folder / "bin"


def compile_code(programs: Path) -> None:
    """Write the compiled code of the application and its packages where it is missing.

    A process that compiles keeps the memory.
    """
    python = str(programs / "python")
    exclude = r"/(\.venv|clients|tests)/"
    subprocess.run([python, "-m", "compileall", "-q", "-x", exclude, str(REPOSITORY)], check=True)
    # Some packages have templates of modules, which are no Python.
    subprocess.run([python, "-m", "compileall", "-qq", str(programs.parent / "lib")], check=False)


def read_usage(roots: list[int]) -> dict[int, ProcessUsage]:
    """Return the usage of the processes and all their descendants, by process id."""
    parents = {int(entry.name): _stat(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    found = set(roots)
    while more := {pid for pid, fields in parents.items() if fields and int(fields[1]) in found} - found:
        found |= more
    return {pid: usage for pid in found if (usage := _read_one(pid, parents.get(pid, [])))}


def _read_one(pid: int, fields: list[str]) -> ProcessUsage | None:
    with suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        pss_kb = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        # utime, stime, cutime and cstime.
        return ProcessUsage(command, pss_kb / 1024, sum(map(int, fields[11:15])) / TICKS_PER_SECOND)
    return None


def _stat(entry: Path) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on, the state; empty when the process has exited."""
    with suppress(OSError):
        return (entry / "stat").read_text().rpartition(")")[2].split()
    return []


if __name__ == "__main__":
    main()
