"""System account that the servers run as; PostgreSQL refuses to run as root."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.embedded.errors import CannotStart


@dataclass(frozen=True)
class SystemAccount:
    """A user of this machine."""

    name: str
    uid: int
    gid: int

    @property
    def popen_options(self) -> dict[str, Any]:
        """The options of `subprocess` that run a program as this user."""
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can_enter(self, directory: Path) -> bool:
        """Return whether the user may enter the directory and all its parents."""
        return self.can_run(["/bin/sh", "-c", 'cd "$1"', "sh", str(directory)])

    def can_run(self, command: Sequence[str]) -> bool:
        """Return whether the command succeeds as this user."""
        try:
            done = subprocess.run(command, check=False, capture_output=True, cwd="/", **self.popen_options)
        except OSError:
            return False
        return done.returncode == 0

    def give_ownership(self, path: Path) -> None:
        """Make the user the owner of the path."""
        if self.uid != os.geteuid():
            os.chown(path, self.uid, self.gid)


def account_for(cluster: Path) -> SystemAccount:
    """Return the account for the servers: the current user, or an unprivileged user when running as root.

    An existing cluster determines the account: PostgreSQL runs only as the owner of its files.
    """
    if os.geteuid() != 0:
        return _by_uid(os.geteuid())
    if cluster.exists():
        return _owner_of(cluster)
    return _unprivileged_account()


def _by_uid(uid: int) -> SystemAccount:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        # Containers may run as a uid without a passwd entry.
        return SystemAccount(str(uid), uid, os.getegid())
    return SystemAccount(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _owner_of(cluster: Path) -> SystemAccount:
    uid = cluster.stat().st_uid
    if uid == 0:
        raise CannotStart(
            f"{cluster} is owned by root, and PostgreSQL refuses to run as root. Restore its previous owner."
        )
    return _by_uid(uid)


def _unprivileged_account() -> SystemAccount:
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return SystemAccount(name, entry.pw_uid, entry.pw_gid)
    raise CannotStart(
        "PostgreSQL refuses to run as root, and this machine has neither a user postgres nor a user"
        " nobody. Run as an ordinary user."
    )
