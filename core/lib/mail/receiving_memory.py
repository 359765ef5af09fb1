"""Memory for the messages that the sessions of a process are receiving, with a share for one workspace.

The first bytes of each message have room of their own, so that large messages never keep out small ones
(docs/decisions/0170).
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Self

from core.lib import forking

# A workspace may use a quarter, in which its largest message must find room.
LARGE_BYTES = 64 * 1024 * 1024
SMALL_BYTES = 16 * 1024 * 1024
SHARES = 4
SMALL_MESSAGE_BYTES = 64 * 1024


@dataclass
class MemoryBudget:
    """Bytes in use, and those of each workspace."""

    limit: int
    used: int = 0
    by_workspace: Counter[str] = field(default_factory=Counter)

    def take(self, workspace_id: str, count: int) -> bool:
        """Count bytes; return False, without counting, if they exceed the limit or the share of the workspace."""
        if self.used + count > self.limit or self.is_share_full(workspace_id, count):
            return False
        self.used += count
        self.by_workspace[workspace_id] += count
        return True

    def is_share_full(self, workspace_id: str, count: int) -> bool:
        """Return whether further bytes exceed the share of a workspace."""
        return self.by_workspace.get(workspace_id, 0) + count > self.limit // SHARES

    def release(self, workspace_id: str, count: int) -> None:
        self.used -= count
        self.by_workspace[workspace_id] -= count
        if not self.by_workspace[workspace_id]:
            del self.by_workspace[workspace_id]


@dataclass
class ReceivingMemory:
    """The memory of a process."""

    small: MemoryBudget = field(default_factory=lambda: MemoryBudget(SMALL_BYTES))
    large: MemoryBudget = field(default_factory=lambda: MemoryBudget(LARGE_BYTES))

    @classmethod
    def of(cls, limit: int) -> Self:
        """Return memory of so many bytes, an eighth of it for the beginnings of messages."""
        small = limit // 8
        return cls(MemoryBudget(small), MemoryBudget(limit - small))

    @property
    def used(self) -> int:
        return self.small.used + self.large.used

    def take(self, workspace_id: str, size: int, count: int) -> bool:
        """Count the next bytes of a message of which `size` bytes are counted; return False if they find no room."""
        small, large = _further_parts(size, count)
        if not self.small.take(workspace_id, small):
            return False
        if not self.large.take(workspace_id, large):
            self.small.release(workspace_id, small)
            return False
        return True

    def is_share_full(self, workspace_id: str, size: int, count: int) -> bool:
        """Return whether the next bytes of a message exceed the share of a workspace."""
        small, large = _further_parts(size, count)
        return self.small.is_share_full(workspace_id, small) or self.large.is_share_full(workspace_id, large)

    def release(self, workspace_id: str, size: int) -> None:
        """Return the bytes of a message."""
        small, large = _parts(size)
        self.small.release(workspace_id, small)
        self.large.release(workspace_id, large)
        if size > forking.LARGE_BYTES and not self.large.used:
            forking.return_free_memory()


def memory_for(message_bytes: int) -> int:
    """Return the least memory in which a message finds room in the share of a workspace."""
    return -(-message_bytes * SHARES * 8 // 7)


def _further_parts(size: int, count: int) -> tuple[int, int]:
    """Return the parts of the next bytes of a message of which `size` bytes are counted."""
    (small, large), (small_before, large_before) = _parts(size + count), _parts(size)
    return small - small_before, large - large_before


def _parts(size: int) -> tuple[int, int]:
    small = min(size, SMALL_MESSAGE_BYTES)
    return small, size - small
