"""The account the servers run as: PostgreSQL refuses to run as root."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embedded.errors import CannotStart


@dataclass(frozen=True)
class Account:
    """A user of this machine."""

    name: str
    uid: int
    gid: int

    @property
    def popen_arguments(self) -> dict[str, Any]:
        """What `subprocess` needs to run a program as this user."""
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can_enter(self, directory: Path) -> bool:
        """Say whether the user may pass through the directory and everything above it."""
        return self.can_run(["/bin/sh", "-c", 'cd "$1"', "sh", str(directory)])

    def can_run(self, command: Sequence[str]) -> bool:
        """Say whether the command succeeds as this user."""
        try:
            done = subprocess.run(command, check=False, capture_output=True, cwd="/", **self.popen_arguments)
        except OSError:
            return False
        return done.returncode == 0

    def take(self, path: Path) -> None:
        """Give the path to the user."""
        if self.uid != os.geteuid():
            os.chown(path, self.uid, self.gid)


def account_for(cluster: Path) -> Account:
    """Return who shall run the servers: ourselves, or for root a user without rights.

    An existing cluster decides: PostgreSQL runs only as the owner of its files.
    """
    if os.geteuid() != 0:
        return _by_uid(os.geteuid())
    if cluster.exists():
        return _owner_of(cluster)
    return _without_rights()


def _by_uid(uid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        # Containers run as numbers that no passwd file knows.
        return Account(str(uid), uid, os.getegid())
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _owner_of(cluster: Path) -> Account:
    uid = cluster.stat().st_uid
    if uid == 0:
        raise CannotStart(f"{cluster} belongs to root, as whom PostgreSQL never runs: give it back to its owner.")
    return _by_uid(uid)


def _without_rights() -> Account:
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise CannotStart(
        "PostgreSQL refuses to run as root, and this machine has neither a user postgres nor a user"
        " nobody: start as an ordinary user."
    )
