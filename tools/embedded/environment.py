"""Virtual environment in .venv, created and installed from a lock file when it is missing or outdated."""

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from core.lib.progress import ProgressBar
from tools.embedded.errors import CannotStart
from tools.embedded.locations import REPOSITORY, VENV
from tools.embedded.packages import install_package
from tools.embedded.processes.processes import signal_on_parent_exit
from tools.embedded.terminal import print_status

PYTHON = VENV / "bin" / "python"
STAMP = VENV / "installed.json"
# The beginning of pip's line with the names of the packages that it installs next.
COLLECTED = "Installing collected packages: "
POLL_SECONDS = 0.5
# Lock files that are included in another one.
INCLUDED = {"requirements-dev.txt": ("requirements-embedded.txt",)}


def enter_environment(lock_file: str, *, module: str = "tools.embedded") -> None:
    """Continue in .venv with the lock file installed; re-executes `python -m module` unless it already runs there."""
    with _installation_lock():
        if not _is_installed(lock_file):
            _install(lock_file)
    if Path(sys.prefix).resolve() != VENV.resolve():
        os.execv(PYTHON, [str(PYTHON), "-m", module, *sys.argv[1:]])  # noqa: S606 - no shell wanted


@contextmanager
def _installation_lock() -> Iterator[None]:
    """Let one launcher at a time install into .venv, by a lock on this package's directory."""
    descriptor = os.open(Path(__file__).parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_installed(lock_file: str) -> bool:
    stamp = _read_stamp()
    return (
        stamp.get(lock_file) == _fingerprint(lock_file)
        and stamp.get("python") == _version_of_venv()
        and _is_acceptable(stamp["python"])
    )


def _install(lock_file: str) -> None:
    version = _version_of_venv()
    if version is None or not _is_acceptable(version) or _read_stamp().get("python", version) != version:
        _create_venv()
    print_status(f"Installing {lock_file} into .venv (this takes a minute or two the first time) …")
    _run_pip(lock_file)
    stamp = _read_stamp() | {"python": _version_of_venv()}
    for name in (lock_file, *INCLUDED.get(lock_file, ())):
        stamp[name] = _fingerprint(name)
    STAMP.write_text(json.dumps(stamp, indent=1) + "\n")


def _is_acceptable(version: str) -> bool:
    """Return whether the environment's Python can be used: any working one, unless PYTHON names another version."""
    return not os.environ.get("PYTHON") or version == platform.python_version()


def _version_of_venv() -> str | None:
    """Return the version of the environment's Python, None when it does not work."""
    # After a system upgrade, the interpreter may be newer than its environment and have no pip.
    code = "import pip, platform, sys; assert sys.version_info >= (3, 11)"
    try:
        done = subprocess.run(
            [PYTHON, "-I", "-c", f"{code}; print(platform.python_version())"],
            check=False,
            capture_output=True,
            text=True,
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _create_venv() -> None:
    print_status(f"Creating .venv for Python {platform.python_version()} …")
    _require_venv_module()
    if VENV.is_symlink():
        VENV.unlink()
    shutil.rmtree(VENV, ignore_errors=True)
    done = subprocess.run([sys.executable, "-m", "venv", VENV], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotStart(f"{sys.executable} could not create .venv: {(done.stderr or done.stdout).strip()}")


def _require_venv_module() -> None:
    """Install the venv module if missing: Debian packages the part that installs pip separately."""
    if _has_venv_module():
        return
    versioned_package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    for package in (versioned_package, "python3-venv"):
        if install_package(package) and _has_venv_module():
            return
    raise CannotStart(
        f"{sys.executable} cannot create virtual environments. Install the package {versioned_package}"
        f" (Debian, Ubuntu: apt install {versioned_package}), or set PYTHON to another Python."
    )


def _has_venv_module() -> bool:
    code = "import venv, ensurepip"
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def _run_pip(lock_file: str) -> None:
    command = [str(PYTHON), "-m", "pip", "install", "--no-input", "--require-hashes", "--progress-bar", "off"]
    with subprocess.Popen(
        [*command, "--disable-pip-version-check", "-r", str(REPOSITORY / lock_file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=signal_on_parent_exit(signal.SIGTERM),  # noqa: PLW1509 - there are no threads yet
        # A user's pip configuration may set --user, which virtual environments do not allow.
        env={**os.environ, "PIP_USER": "0"},
    ) as process:
        output = deque(_show_progress(process.stdout or (), lock_file), maxlen=8)
    if process.returncode != 0:
        raise CannotStart(f"pip could not install {lock_file} (check the network connection):\n{''.join(output)}")


def _show_progress(lines: Iterable[str], lock_file: str) -> Iterator[str]:
    """Yield the lines of pip, and show the progress by the packages that it collects."""
    # Some packages of the lock file are for other systems only.
    total = len(re.findall(r"^\S+==", (REPOSITORY / lock_file).read_text(), re.MULTILINE))
    with ExitStack() as stack:
        bar = stack.enter_context(ProgressBar("Downloads", total=total))
        for line in lines:
            if line.startswith("Collecting "):
                bar.advance(detail=line.split()[1].partition("=")[0])
            elif line.startswith(COLLECTED):
                bar.finish()
                stack.enter_context(_installation_progress(len(line.removeprefix(COLLECTED).split(","))))
            yield line


@contextmanager
def _installation_progress(total: int) -> Iterator[None]:
    """Show how many packages are installed, while pip installs them without a line of output."""
    is_done, started = Event(), time.time()
    thread = Thread(target=_count_installed, args=(total, started, is_done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def _count_installed(total: int, started: float, is_done: Event) -> None:
    shown = 0
    with ProgressBar("Installation", total=total) as bar:
        while not is_done.wait(POLL_SECONDS):
            # A package that replaces another version has a new directory, too.
            installed = [path for path in VENV.glob("lib/*/site-packages/*.dist-info") if _time_of(path) >= started]
            bar.advance(len(installed) - shown)
            shown = len(installed)
        bar.finish()


def _time_of(path: Path) -> float:
    """Return when a directory was changed; 0 for one that pip has removed."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _read_stamp() -> dict[str, Any]:
    try:
        stamp: dict[str, Any] = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp


def _fingerprint(lock_file: str) -> str:
    return hashlib.sha256((REPOSITORY / lock_file).read_bytes()).hexdigest()
