"""Separate file system for PostgreSQL that can be filled completely and freed again.

It is a tmpfs whose size is reduced to the used space, so nothing is written and it is freed immediately.
Mounting requires root, and in a container the right to mount.
"""

import os
import subprocess
from pathlib import Path

from tests.stack.stack import wait_for

TMPFS_SIZE = "75%"  # of memory, allocated only when used


class Disk:
    """A directory that is a separate file system until `unmount`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def mounted(cls, directory: Path) -> "Disk | None":
        """Mount a file system over an empty directory; return None when that is not allowed."""
        if os.geteuid() != 0:
            return None
        mode = f"{directory.stat().st_mode & 0o777:o}"
        command = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_SIZE},mode={mode}", "postrider-chaos", str(directory)]
        done = subprocess.run(command, check=False, capture_output=True)
        return None if done.returncode else cls(directory)

    def fill(self, *, spare_bytes: int) -> None:
        """Leave only this much space; retried, because other processes write at the same time."""
        wait_for(lambda: self._resize(str(self._used_bytes() + spare_bytes)), seconds=60, what="a full disk")

    def _used_bytes(self) -> int:
        space = os.statvfs(self.directory)
        return (space.f_blocks - space.f_bfree) * space.f_frsize

    def free(self) -> None:
        assert self._resize(TMPFS_SIZE), "the disk cannot be freed"

    def _resize(self, size: str) -> bool:
        command = ["mount", "-o", f"remount,size={size}", str(self.directory)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.directory)], check=False, capture_output=True)
