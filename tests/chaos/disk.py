"""A disk of its own for PostgreSQL, which can be filled to the last page and given room again.

It is a tmpfs, and full means that its size is set to what is used: no ballast is written, and room comes back at once.
Only root may mount; elsewhere, and in a container without the right, there is none.
"""

import os
import subprocess
from pathlib import Path

from tests.stack.stack import wait_for

ROOM = "75%"  # of the memory: never reached, and taken only as it is used


class Disk:
    """A directory that is a file system of its own, until `unmount`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def mounted(cls, directory: Path) -> "Disk | None":
        """Mount one over an empty directory; return None where that is not allowed."""
        if os.geteuid() != 0:
            return None
        mode = f"{directory.stat().st_mode & 0o777:o}"
        command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode={mode}", "postrider-chaos", str(directory)]
        done = subprocess.run(command, check=False, capture_output=True)
        return None if done.returncode else cls(directory)

    def fill(self, *, spare_bytes: int) -> None:
        """Leave no more room than this; what is being written meanwhile may need another look."""
        wait_for(lambda: self._resize(str(self._used_bytes() + spare_bytes)), seconds=10, what="a full disk")

    def _used_bytes(self) -> int:
        space = os.statvfs(self.directory)
        return (space.f_blocks - space.f_bfree) * space.f_frsize

    def free(self) -> None:
        assert self._resize(ROOM), "the disk cannot be given room again"

    def _resize(self, size: str) -> bool:
        command = ["mount", "-o", f"remount,size={size}", str(self.directory)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.directory)], check=False, capture_output=True)
