"""Node, npm, and a package cache outside of the working tree."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.stack.stack import REPOSITORY
from tests.standards.tools import locked

MIN_NODE_VERSION = 18
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
    """Return the path of a supported Node. Skips the test without one."""
    node = shutil.which("node")
    if not node or not shutil.which("npm"):
        pytest.skip("node and npm are not on the PATH")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < MIN_NODE_VERSION:
        pytest.skip(f"node is {version}; the clients require {MIN_NODE_VERSION} or newer")
    return node


def run(*command: str, cwd: Path, env: dict[str, str] | None = None, seconds: float = 300) -> str:
    """Run a command and return its output. Raises AssertionError with the output if it fails."""
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, cwd=cwd, env=env, timeout=seconds, check=False, **pipes)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


def copy_package(package: str, *, into: Path) -> Path:
    """Copy a package and link its npm dependencies. Nothing is written to the working tree."""
    source = REPOSITORY / package
    target = into / Path(package).name
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("node_modules", "dist", "*.tgz"))
    (target / "node_modules").symlink_to(node_modules_of(source))
    return target


def node_modules_of(source: Path) -> Path:
    """Return the node_modules of the package's lock file, fetched if not cached.

    Skips the test if the registry is unreachable.
    """
    lock = source / "package-lock.json"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    home = cache() / f"{source.name}-{digest}"
    with locked("npm"):
        if not home.exists():
            _fetch(source, into=home)
    return home / "node_modules"


def cache() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "postrider" / "npm"


def _fetch(source: Path, *, into: Path) -> None:
    # Fetched into a temporary directory and renamed: an interrupted run leaves no incomplete cache.
    partial = into.with_name(f"{into.name}.{os.getpid()}")
    partial.mkdir(parents=True)
    try:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(source / name, partial)
        _npm_ci(partial)
        partial.rename(into)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _npm_ci(home: Path) -> None:
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=500, check=False)
    if any(error in done.stderr for error in NETWORK_ERRORS):
        pytest.skip("npm cannot reach its registry")
    assert done.returncode == 0, done.stderr
