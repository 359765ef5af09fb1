"""Third-party programs that verify messages: found, or installed if possible.

Debian packages are installed when root, npm packages into a cache outside the tree. If neither is possible, the test
is skipped with the reason.
"""

import fcntl
import functools
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "postrider-tests"
# Only the programs of the packages are needed, not their daemons: no prompts, and no runlevel to start them in.
DEBIAN = {**os.environ, "PATH": PATH, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
INSTALL = ("apt-get", "install", "-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120")
# The latest versions that run on Debian 12's Node.
MODULES = ("mailauth@4.12.0", "mailparser@3.7.5")
SECONDS = 300


def _once(find: Callable[..., Any]) -> Callable[..., Any]:
    """Cache the result, and also a skip: without a network each attempt takes a minute."""

    @functools.cache
    def outcome(*arguments: str) -> tuple[Any, BaseException | None]:
        try:
            return find(*arguments), None
        except pytest.skip.Exception as reason:
            return None, reason

    @functools.wraps(find)
    def found(*arguments: str) -> Any:
        value, reason = outcome(*arguments)
        if reason:
            raise reason
        return value

    return found


def program(name: str, *, package: str) -> str:
    """Return the path of a program, after installing its Debian package if missing."""
    return _found(name) or _installed(name, package)


@_once
def program_of_package(path: str, package: str) -> Path:
    """Return a file of a Debian package that is not installed, since it conflicts with another one."""
    if not _found("apt-get"):
        pytest.skip(f"only Debian has {package}")
    directory = CACHE / package
    with locked("apt"):
        if not (directory / "done").exists():
            directory.mkdir(parents=True, exist_ok=True)
            _download(package, directory)
            (archive,) = directory.glob("*.deb")
            _run("dpkg-deb", "--extract", str(archive), str(directory))
            (directory / "done").touch()
    return directory / path


@_once
def program_of_release(path: str, package: str, release: str) -> list[str]:
    """Return a command that runs a program of another release of Debian with the libraries of that release."""
    mmdebstrap = program("mmdebstrap", package="mmdebstrap")
    root = CACHE / f"{release}-{package}"
    with locked("apt"):
        if not root.exists():
            root.parent.mkdir(parents=True, exist_ok=True)
            fresh = root.with_suffix(".new")
            shutil.rmtree(fresh, ignore_errors=True)
            _run(mmdebstrap, "--variant=extract", f"--include={package}", release, str(fresh))
            fresh.rename(root)
    (loader,) = root.glob("usr/lib*/ld-linux-*.so.*")
    libraries = next(root.glob("usr/lib/*-linux-gnu"))
    return [str(loader), "--library-path", str(libraries), str(root / path)]


def library(pattern: str, *, package: str) -> Path:
    """Return a file below /usr that matches a pattern, after installing its Debian package if missing."""
    return _present(pattern) or _installed_file(pattern, package)


def swaks() -> str:
    """Return the path of swaks, after installing the library for TLS, which Debian's package only recommends."""
    library("lib/*/perl5/*/Net/SSLeay.pm", package="libnet-ssleay-perl")
    return program("swaks", package="swaks")


def node_modules() -> Path:
    """Return the directory of the npm verifiers, installed once per machine."""
    modules: Path = npm_modules(*MODULES)
    return modules


@_once
def npm_modules(*modules: str) -> Path:
    """Return the directory of npm modules, installed once per machine."""
    npm = program("npm", package="npm")
    directory = CACHE / "-".join(module.replace("@", "_") for module in modules)
    with locked("npm"):
        if not (directory / "done").exists():
            directory.mkdir(parents=True, exist_ok=True)
            _run(npm, "install", "--prefix", str(directory), "--ignore-scripts", "--no-audit", "--no-fund", *modules)
            (directory / "done").touch()
    return directory / "node_modules"


@_once
def python_packages(*packages: str) -> Path:
    """Return a directory for PYTHONPATH with packages that need no others, installed once per machine."""
    directory = CACHE / "-".join(packages)
    with locked("pip"):
        if not (directory / "done").exists():
            _run(sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(directory), *packages)
            (directory / "done").touch()
    return directory


def node(script: Path, *arguments: str, given: str = "") -> str:
    """Run a Node script with mailauth and mailparser available; return its output."""
    command = [program("node", package="nodejs"), str(script), *arguments]
    environment = {**os.environ, "NODE_PATH": str(node_modules())}
    done = subprocess.run(
        command, env=environment, input=given, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def greets(port: int) -> bool:
    """Return whether an SMTP server on the port on loopback greets its clients."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            return connection.recv(3) == b"220"
    except OSError:
        return False


def _found(name: str) -> str | None:
    return shutil.which(name, path=PATH)


def _present(pattern: str) -> Path | None:
    return next(Path("/usr").glob(pattern), None)


@_once
def _installed_file(pattern: str, package: str) -> Path:
    if os.geteuid() != 0 or not _found("apt-get"):
        pytest.skip(f"only root can install Debian's {package}")
    with locked("apt"):
        if not _present(pattern):
            _install(package)
    found: Path = _present(pattern) or pytest.skip(f"Debian's {package} has no {pattern}")
    return found


@_once
def _installed(name: str, package: str) -> str:
    if os.geteuid() != 0 or not _found("apt-get"):
        pytest.skip(f"{name} is not installed, and only root can install Debian's {package}")
    with locked("apt"):
        if not _found(name):
            _install(package)
    return _found(name) or pytest.skip(f"Debian's {package} has no {name}")


def _install(package: str) -> None:
    if package == "postfix":
        choice = "postfix postfix/main_mailer_type select No configuration\n"
        subprocess.run(["debconf-set-selections"], input=choice, text=True, env=DEBIAN, check=False)
    first = subprocess.run([*INSTALL, package], env=DEBIAN, capture_output=True, timeout=SECONDS, check=False)
    if first.returncode:
        # A new machine has no package lists yet.
        _run("apt-get", "update", "-q")
        _run(*INSTALL, package)


def _download(package: str, directory: Path) -> None:
    command = ("apt-get", "download", "-q", package)
    first = subprocess.run(command, cwd=directory, env=DEBIAN, capture_output=True, timeout=SECONDS, check=False)
    if first.returncode:
        _run("apt-get", "update", "-q")
        _run(*command, directory=directory)


def _run(*command: str, directory: Path | None = None) -> None:
    try:
        done = subprocess.run(
            command, cwd=directory, env=DEBIAN, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{' '.join(command)} took too long")
    if done.returncode:
        pytest.skip(f"{' '.join(command)} failed: {done.stderr.strip()[-300:]}")


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Let one process at a time install: concurrent runs of apt, npm or pip would conflict."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
