"""Server directories, which contain the files of PostgreSQL and Redis.

The server directory is below DATA_DIR. A DATA_DIR of root is often below /root, which the servers' account cannot
enter; then the server directory is elsewhere, and a pointer file in DATA_DIR contains its path.
"""

import os
import shutil
import tempfile
from pathlib import Path

from tools.embedded.errors import CannotStart
from tools.embedded.servers.accounts import account_for
from tools.embedded.servers.cluster import cluster_in

# Directories that every account can enter and that survive a reboot; the first writable one is used.
SHARED_DIRECTORIES = ("/var/lib", "/var/tmp")  # noqa: S108 - mkdtemp chooses the names
TEMPORARY_DIRECTORIES = ("/tmp", "/var/tmp")  # noqa: S108 - as above
OWNER_FILE = "belongs-to"
POINTER_FILE = "servers-are-in"


def find_server_directory(data_directory: Path) -> Path:
    """Return the server directory of a DATA_DIR, created if missing.

    Raises CannotStart when the directory in the pointer file is missing or belongs to another DATA_DIR.
    """
    pointer = data_directory / POINTER_FILE
    if pointer.exists():
        return _follow_pointer(pointer, data_directory)
    server_directory = data_directory / "servers"
    if server_directory.exists() and any(server_directory.iterdir()):
        return _require_access(server_directory)
    _create_accessible(server_directory)
    if account_for(cluster_in(server_directory)).can_enter(server_directory):
        return server_directory
    return _create_outside(pointer, data_directory)


def find_orphaned_directories(data_directory: Path) -> list[Path]:
    """Return the server directories left behind by a removed DATA_DIR of the same path."""
    pointer = data_directory / POINTER_FILE
    current = pointer.read_text().strip() if pointer.exists() else ""
    owners = [owner for parent in SHARED_DIRECTORIES for owner in Path(parent).glob(f"postrider-*/{OWNER_FILE}")]
    return [
        owner.parent
        for owner in owners
        if owner.stat().st_uid == os.geteuid()
        and owner.read_text().strip() == str(data_directory)
        and str(owner.parent) != current
    ]


def make_temporary_directory() -> Path:
    """Return a new temporary directory that the servers' account can enter."""
    for parent in dict.fromkeys((tempfile.gettempdir(), *TEMPORARY_DIRECTORIES)):
        server_directory = Path(tempfile.mkdtemp(prefix="postrider-", dir=parent))
        _create_accessible(server_directory)
        if account_for(cluster_in(server_directory)).can_enter(server_directory):
            return server_directory
        server_directory.rmdir()
    raise CannotStart("No temporary directory was found that the servers' account can enter.")


def remove_temporary_directory(server_directory: Path) -> None:
    """Remove a temporary directory and its content."""
    shutil.rmtree(server_directory, ignore_errors=True)


def _follow_pointer(pointer: Path, data_directory: Path) -> Path:
    server_directory = Path(pointer.read_text().strip())
    owner = server_directory / OWNER_FILE
    if not owner.exists():
        raise CannotStart(
            f"The server directory {server_directory} of {data_directory} (see {pointer}) is missing."
            " Restore it, or set another DATA_DIR."
        )
    owner_directory = Path(owner.read_text().strip())
    if owner_directory != data_directory and (owner_directory / POINTER_FILE).exists():
        raise CannotStart(
            f"{data_directory} is a copy of {owner_directory}, and both use {server_directory}."
            " Two services cannot share one database. Set another DATA_DIR."
        )
    owner.write_text(f"{data_directory}\n")
    return server_directory


def _require_access(server_directory: Path) -> Path:
    account = account_for(cluster_in(server_directory))
    if not account.can_enter(server_directory):
        raise CannotStart(
            f"The database runs as the user {account.name}, who cannot enter {server_directory}."
            f" Allow access to its parent directories (chmod o+x)."
        )
    return server_directory


def _create_accessible(server_directory: Path) -> None:
    server_directory.mkdir(parents=True, exist_ok=True)
    # Servers started by root run as another user, who may enter the directory but not list it.
    server_directory.chmod(0o711 if os.geteuid() == 0 else 0o700)


def _create_outside(pointer: Path, data_directory: Path) -> Path:
    """Create a server directory outside DATA_DIR, then write its owner file and the pointer file."""
    parent = next(parent for parent in SHARED_DIRECTORIES if os.access(parent, os.W_OK))
    server_directory = Path(tempfile.mkdtemp(prefix="postrider-", dir=parent))
    _create_accessible(server_directory)
    (server_directory / OWNER_FILE).write_text(f"{data_directory}\n")
    pointer.write_text(f"{server_directory}\n")
    return server_directory
