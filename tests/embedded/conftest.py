"""A stand-in for the repository: the real launcher with small programs, in its own place."""

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

from embedded.locations import REPOSITORY, VENV
from embedded.servers.homes import OPEN_PLACES, OWNER_FILE
from embedded.servers.ports import choose_ports

STAND_IN = Path(__file__).parent / "fake_project"
SET_BY_BIN_TEST = ("DATABASE_URL", "REDIS_URL", "MODE", "SECRET_KEY", "APP_KEYS", "DATA_DIR")


def eventually(is_true: Callable[[], object], *, seconds: float = 20) -> bool:
    """Return whether something came true in time."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def processes_in(*places: Path) -> list[str]:
    """Return what runs in the places or names them: servers work in their homes."""
    return [line for pid in _pids() for line in _if_in(pid, places)]


def _pids() -> list[str]:
    return [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _if_in(pid: str, places: tuple[Path, ...]) -> Iterator[str]:
    with suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        cwd = Path(f"/proc/{pid}/cwd").readlink()
        if command and any(cwd.is_relative_to(place) or str(place) in command for place in places):
            yield f"{pid} {command}"


@dataclass
class StandIn:
    """A repository with the launcher of ours and programs of its own."""

    path: Path
    port: int
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def data(self) -> Path:
        """The DATA_DIR of every command here."""
        return self.path / "var"

    @property
    def homes(self) -> list[Path]:
        """Where the servers' files are when DATA_DIR is closed to the servers' account."""
        owners = [o for place in OPEN_PLACES for o in Path(place).glob(f"postrider-*/{OWNER_FILE}")]
        return [owner.parent for owner in owners if owner.read_text().strip() == str(self.data)]

    def environment(self, **settings: str) -> dict[str, str]:
        """Return what a person's shell would hand over."""
        inherited = {n: text for n, text in os.environ.items() if n not in SET_BY_BIN_TEST}
        # The Python that runs the tests, so that no search slows each of them down.
        return inherited | {"PORT": str(self.port), "PYTHON": sys.executable} | settings

    def start(self, command: str, *arguments: str, **settings: str) -> subprocess.Popen[str]:
        """Start a command of bin/."""
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
        """Run bin/run and wait until it has said that all is up."""
        process = self.start("run", **settings)
        assert process.stdout
        for line in process.stdout:
            if line.startswith("A second start keeps"):
                return process
        raise AssertionError(process.communicate()[1])

    def finish(
        self, command: str, *arguments: str, stdin: str = "", **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of bin/ to its end."""
        process = self.start(command, *arguments, **settings)
        output, errors = process.communicate(stdin, timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)

    def answers(self) -> bool:
        """Say whether the web process serves."""
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz") as r:
            return bool(r.status == 200)
        return False

    def is_empty(self) -> bool:
        """Say whether nothing runs here any more."""
        return not processes_in(self.path, *self.homes)

    def runtime(self) -> dict[str, object]:
        """Return what the launcher says of itself."""
        facts: dict[str, object] = json.loads((self.data / "private" / "runtime.json").read_text())
        return facts

    def remove(self) -> None:
        """End and remove everything, whatever state a test left it in."""
        for process in self.started:
            with process:  # closes its pipes
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                process.wait(timeout=30)
        for line in processes_in(self.path, *self.homes):
            with suppress(ProcessLookupError):
                os.kill(int(line.split()[0]), signal.SIGKILL)
        for place in (*self.homes, self.path):
            shutil.rmtree(place, ignore_errors=True)


def build_stand_in(path: Path) -> StandIn:
    """Put the launcher and the stand-in's programs into a directory."""
    shutil.copytree(STAND_IN, path, dirs_exist_ok=True)
    for name in ("bin", "embedded"):
        shutil.copytree(REPOSITORY / name, path / name, ignore=shutil.ignore_patterns("__pycache__", "check"))
    (path / "programs.py").replace(path / "embedded" / "programs.py")
    for lock_file in REPOSITORY.glob("requirements*.txt"):
        shutil.copy(lock_file, path)
    (path / ".venv").symlink_to(VENV)
    return StandIn(path, choose_ports(1)[0])


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the servers' account can enter; pytest's own are closed."""
    path = Path(tempfile.mkdtemp(prefix="launcher-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def stand_in(place: Path) -> Iterator[StandIn]:
    """A repository to run."""
    built = build_stand_in(place / "postrider")
    yield built
    built.remove()
