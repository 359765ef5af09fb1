"""A fake project: the real launcher with small programs, in a separate directory."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools.embedded.locations import REPOSITORY, VENV
from tools.embedded.servers.ports import choose_ports
from tools.embedded.servers.server_directories import OWNER_FILE, SHARED_DIRECTORIES

TEMPLATE = Path(__file__).parent / "fake_project"
SET_BY_BIN_TEST = ("DATABASE_URL", "REDIS_URL", "MODE", "SECRET_KEY", "APP_KEYS", "DATA_DIR")


def wait_until(is_true: Callable[[], object], *, seconds: float = 60) -> bool:
    """Poll a condition; return whether it became true within the timeout."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def processes_in(*directories: Path) -> list[str]:
    """Return the pid and command line of every process that runs in one of the directories or names it."""
    return [line for pid in _pids() for line in _describe_if_in(pid, directories)]


def _pids() -> list[str]:
    return [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _describe_if_in(pid: str, directories: tuple[Path, ...]) -> Iterator[str]:
    with suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        cwd = Path(f"/proc/{pid}/cwd").readlink()
        if command and any(cwd.is_relative_to(path) or str(path) in command for path in directories):
            yield f"{pid} {command}"


@dataclass
class FakeProject:
    """A repository with the real launcher and fake programs."""

    path: Path
    port: int
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def data(self) -> Path:
        """The DATA_DIR of all commands."""
        return self.path / "var"

    @property
    def server_directories(self) -> list[Path]:
        """The server directories outside a DATA_DIR that the servers' account cannot enter."""
        owners = [o for directory in SHARED_DIRECTORIES for o in Path(directory).glob(f"postrider-*/{OWNER_FILE}")]
        return [owner.parent for owner in owners if owner.read_text().strip() == str(self.data)]

    def environment(self, **settings: str) -> dict[str, str]:
        """Return the environment of a user's shell."""
        inherited = {n: text for n, text in os.environ.items() if n not in SET_BY_BIN_TEST}
        # The Python that runs the tests, so that no test has to search for one.
        return inherited | {"PORT": str(self.port), "PYTHON": sys.executable} | settings

    def start(self, command: str, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        """Start a command of bin/."""
        # As in a terminal, also if the tests were started with nohup.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        process = subprocess.Popen(
            [self.path / "bin" / command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(**settings),
        )
        self.started.append(process)
        return process

    def start_service(self, **settings: str) -> subprocess.Popen[str]:
        """Run bin/run and wait for its welcome message."""
        process = self.start("run", **settings)
        assert process.stdout
        for line in process.stdout:
            if line.startswith("Press Ctrl-C to stop."):
                return process
        raise AssertionError(process.communicate()[1])

    def run(self, command: str, *arguments: str, stdin: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command of bin/ to completion."""
        process = self.start(command, *arguments, **settings)
        output, errors = process.communicate(stdin, timeout=120)
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)

    def is_ready(self) -> bool:
        """Return whether the web process serves requests."""
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz") as r:
            return bool(r.status == 200)
        return False

    def has_stopped(self) -> bool:
        """Return whether no process runs in the project."""
        return not processes_in(self.path, *self.server_directories)

    def runtime(self) -> dict[str, object]:
        """Return the content of the runtime file."""
        values: dict[str, object] = json.loads((self.data / "private" / "runtime.json").read_text())
        return values

    def remove(self) -> None:
        """Stop all processes and remove all files, in any state a test left them."""
        for process in self.started:
            with process:  # closes its pipes
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                process.wait(timeout=60)
        for line in processes_in(self.path, *self.server_directories):
            with suppress(ProcessLookupError):
                os.kill(int(line.split()[0]), signal.SIGKILL)
        for directory in (*self.server_directories, self.path):
            shutil.rmtree(directory, ignore_errors=True)


def build_fake_project(path: Path) -> FakeProject:
    """Copy the launcher and the fake programs into a directory."""
    shutil.copytree(TEMPLATE, path, dirs_exist_ok=True)
    for name in ("bin", "tools/embedded", "core/lib", "clients/generator"):
        shutil.copytree(REPOSITORY / name, path / name, ignore=shutil.ignore_patterns("__pycache__", "check"))
    (path / "docs").mkdir()
    shutil.copy(REPOSITORY / "docs/openapi.json", path / "docs")
    for lock_file in REPOSITORY.glob("requirements*.txt"):
        shutil.copy(lock_file, path)
    (path / ".venv").symlink_to(VENV)
    return FakeProject(path, choose_ports(1)[0])


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that the servers' account can enter, unlike pytest's temporary directories."""
    path = Path(tempfile.mkdtemp(prefix="launcher-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def fake_project(open_directory: Path) -> Iterator[FakeProject]:
    """A fake project to run."""
    built = build_fake_project(open_directory / "postrider")
    yield built
    built.remove()
