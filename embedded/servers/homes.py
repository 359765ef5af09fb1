"""Where the servers keep their files: below DATA_DIR, or beside it when they could not get there.

Root's DATA_DIR is often below /root, which the servers' account cannot enter. Then the home is a
directory of its own, and DATA_DIR says where.
"""

import os
import shutil
import tempfile
from pathlib import Path

from embedded.errors import CannotStart
from embedded.servers.accounts import account_for
from embedded.servers.cluster import cluster_in

# Places that every account can enter and no reboot empties; the first that exists is taken.
OPEN_PLACES = ("/var/lib", "/var/tmp")  # noqa: S108 - mkdtemp makes the names
TEMPORARY_PLACES = ("/tmp", "/var/tmp")  # noqa: S108 - as above
OWNER_FILE = "belongs-to"
NOTE_FILE = "servers-are-in"


def find_home(data_directory: Path) -> Path:
    """Return the home of the servers of a DATA_DIR, made when it is new.

    Raises CannotStart when the home that DATA_DIR names is missing or belongs to another one.
    """
    note = data_directory / NOTE_FILE
    if note.exists():
        return _follow(note, data_directory)
    home = data_directory / "servers"
    if home.exists() and any(home.iterdir()):
        return _refuse_if_closed(home)
    _make_enterable(home)
    if account_for(cluster_in(home)).can_enter(home):
        return home
    return _move_out(note, data_directory)


def find_earlier_homes(data_directory: Path) -> list[Path]:
    """Return homes outside of a DATA_DIR that a removed DATA_DIR of the same path left behind."""
    note = data_directory / NOTE_FILE
    current = note.read_text().strip() if note.exists() else ""
    owners = [owner for place in OPEN_PLACES for owner in Path(place).glob(f"postrider-*/{OWNER_FILE}")]
    return [
        owner.parent
        for owner in owners
        if owner.stat().st_uid == os.geteuid()
        and owner.read_text().strip() == str(data_directory)
        and str(owner.parent) != current
    ]


def make_temporary_home() -> Path:
    """Return a new temporary directory that the servers' account can enter."""
    for place in dict.fromkeys((tempfile.gettempdir(), *TEMPORARY_PLACES)):
        home = Path(tempfile.mkdtemp(prefix="postrider-", dir=place))
        _make_enterable(home)
        if account_for(cluster_in(home)).can_enter(home):
            return home
        home.rmdir()
    raise CannotStart("No temporary directory was found that the servers' account can enter.")


def remove_temporary_home(home: Path) -> None:
    """Remove a temporary home with all that is in it."""
    shutil.rmtree(home, ignore_errors=True)


def _follow(note: Path, data_directory: Path) -> Path:
    home = Path(note.read_text().strip())
    owner = home / OWNER_FILE
    if not owner.exists():
        raise CannotStart(
            f"The servers of {data_directory} keep their files in {home} (says {note}),"
            " which is missing: bring it back, or set DATA_DIR to another place."
        )
    owner_directory = Path(owner.read_text().strip())
    if owner_directory != data_directory and (owner_directory / NOTE_FILE).exists():
        raise CannotStart(
            f"{data_directory} is a copy of {owner_directory}, and both name {home}:"
            " two services cannot share one database. Set DATA_DIR to another place."
        )
    owner.write_text(f"{data_directory}\n")
    return home


def _refuse_if_closed(home: Path) -> Path:
    account = account_for(cluster_in(home))
    if not account.can_enter(home):
        raise CannotStart(
            f"The user {account.name}, as whom the database runs, cannot enter {home}:"
            f" open the directories above it (chmod o+x)."
        )
    return home


def _make_enterable(home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    # Root's servers run as somebody else, who passes through but lists nothing.
    home.chmod(0o711 if os.geteuid() == 0 else 0o700)


def _move_out(note: Path, data_directory: Path) -> Path:
    """Make a home in an open place and write down where, first there and then here."""
    place = next(place for place in OPEN_PLACES if os.access(place, os.W_OK))
    home = Path(tempfile.mkdtemp(prefix="postrider-", dir=place))
    _make_enterable(home)
    (home / OWNER_FILE).write_text(f"{data_directory}\n")
    note.write_text(f"{home}\n")
    return home
