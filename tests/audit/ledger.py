"""What callers of the API know for sure: what they asked for, and what they were answered."""

import threading
import time
import zlib
from dataclasses import dataclass, field


@dataclass
class Sent:
    """An email that was accepted with a 2xx."""

    email_id: str
    workspace: str
    addresses: tuple[str, ...]
    cancelled_at: float | None = None


@dataclass(frozen=True)
class Suppressed:
    """An address that the API has said is blocked, from then on."""

    workspace: str
    address: str
    at: float


@dataclass(frozen=True)
class Endpoint:
    """A webhook that was registered before anything was sent; path is where our receiver has it."""

    workspace: str
    path: str
    kinds: frozenset[str]


@dataclass(frozen=True)
class Copy:
    """A message that came to our sink whole, whether or not its sender heard the answer.

    packed: its source, compressed: a long run keeps a hundred thousand of them. at: seconds since 1970.
    """

    recipient: str
    packed: bytes
    at: float
    # The envelope's return path.
    sender: str = ""

    @classmethod
    def of(cls, recipient: str, source: bytes, at: float, sender: str = "") -> "Copy":
        return cls(recipient, zlib.compress(source, 1), at, sender)

    @property
    def source(self) -> bytes:
        return zlib.decompress(self.packed)


@dataclass(frozen=True)
class Post:
    """A request to one of our endpoints; status is what it was answered, None for nothing.

    off_seconds: how far the moment that it is signed with was from ours.
    """

    path: str
    event_id: str
    body: bytes
    status: int | None
    off_seconds: float = 0.0


@dataclass
class Ledger:
    """Everything from outside of the service, written by several threads."""

    sent: list[Sent] = field(default_factory=list)
    suppressed: list[Suppressed] = field(default_factory=list)
    endpoints: list[Endpoint] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    # Recipients of whom a mail host has told us, and heard 250, that they do not exist.
    reports: set[str] = field(default_factory=set)
    # The marks of workspaces: a word in every email of theirs.
    marks: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def accepted(self, email_id: str, *, workspace: str, addresses: tuple[str, ...]) -> Sent:
        sent = Sent(email_id, workspace, addresses)
        with self.lock:
            self.sent.append(sent)
        return sent

    def cancelled(self, sent: Sent) -> None:
        sent.cancelled_at = time.time()

    def blocked(self, workspace: str, address: str) -> None:
        with self.lock:
            self.suppressed.append(Suppressed(workspace, address, time.time()))
