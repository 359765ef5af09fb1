"""Node, npm, and a place outside of the tree where packages are fetched once."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.stack.stack import REPOSITORY

OLDEST = 18
NETWORK_ERRORS = (
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ETIMEDOUT",
    "ECONNRESET",
    "ENETUNREACH",
    "ERR_SOCKET_TIMEOUT",
)


def need_node() -> str:
    """Return the path of a Node that is new enough. Skips the test where there is none."""
    node = shutil.which("node")
    if not node or not shutil.which("npm"):
        pytest.skip("node and npm are not on the PATH")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < OLDEST:
        pytest.skip(f"node is {version}, and {OLDEST} is the oldest that the clients support")
    return node


def run(*command: str, cwd: Path, env: dict[str, str] | None = None, seconds: float = 300) -> str:
    """Run to its end and return what it printed. Raises AssertionError with that when it fails."""
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, cwd=cwd, env=env, timeout=seconds, check=False, **pipes)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


def copy_of(package: str, *, into: Path) -> Path:
    """Copy a package of the tree to work in, with its npm dependencies at hand. Nothing is written to the tree."""
    source = REPOSITORY / package
    target = into / Path(package).name
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("node_modules", "dist", "*.tgz"))
    (target / "node_modules").symlink_to(modules_of(source))
    return target


def modules_of(source: Path) -> Path:
    """Return a node_modules with what the package's lock file names, fetched when it is not there yet.

    Skips the test where the registry is out of reach.
    """
    lock = source / "package-lock.json"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    home = cache() / f"{source.name}-{digest}"
    if not home.exists():
        _fetch(source, into=home)
    return home / "node_modules"


def cache() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "postrider" / "npm"


def _fetch(source: Path, *, into: Path) -> None:
    # Fetched beside and renamed: a run that is stopped leaves nothing that looks whole.
    half = into.with_name(f"{into.name}.{os.getpid()}")
    half.mkdir(parents=True)
    try:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(source / name, half)
        _npm_ci(half)
        half.rename(into)
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _npm_ci(home: Path) -> None:
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=500, check=False)
    if any(error in done.stderr for error in NETWORK_ERRORS):
        pytest.skip("npm cannot reach its registry")
    assert done.returncode == 0, done.stderr
