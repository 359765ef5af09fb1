"""Ledger of the requests and answers that were observed outside the service."""

import hashlib
import threading
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class AcceptedEmail:
    """An email that was accepted with a 2xx."""

    email_id: str
    workspace: str
    addresses: tuple[str, ...]
    cancelled_at: float | None = None


@dataclass(frozen=True)
class SuppressedAddress:
    """An address that the API confirmed as suppressed, from that time on."""

    workspace: str
    address: str
    at: float


@dataclass(frozen=True)
class RegisteredEndpoint:
    """A webhook endpoint, registered before anything was sent; path: at the test's receiver."""

    workspace: str
    path: str
    kinds: frozenset[str]


@dataclass(frozen=True)
class ReceivedMessage:
    """A message that a sink received completely, whether or not the sender received the answer.

    compressed: the source; a long run keeps a hundred thousand messages. at: seconds since 1970. transport: the named
    transport whose sink received it.
    """

    recipient: str
    compressed: bytes
    at: float
    # The envelope's return path.
    sender: str = ""
    transport: str = ""

    @classmethod
    def of(
        cls, recipient: str, source: bytes, at: float, sender: str = "", *, transport: str = ""
    ) -> "ReceivedMessage":
        return cls(recipient, zlib.compress(source, 1), at, sender, transport)

    @property
    def source(self) -> bytes:
        return zlib.decompress(self.compressed)


@dataclass(frozen=True)
class WebhookRequest:
    """A request to a webhook endpoint; status: of the answer, None without one.

    clock_skew_seconds: difference between the signed timestamp and the time of the receiver.
    """

    path: str
    event_id: str
    body: bytes
    status: int | None
    clock_skew_seconds: float = 0.0


@dataclass(frozen=True)
class AcknowledgedMessage:
    """A message to an address of a workspace that the inbound server acknowledged with a 250.

    sender, subject, text: as it is to be read. digest: the SHA-256 of its source, in hexadecimal. answers: the id of
    the email that it answers; empty if none. is_forwarded: whether a route forwards what its recipient receives.
    """

    message_id: str
    recipient: str
    workspace: str
    size: int
    digest: str
    sender: str = ""
    subject: str = ""
    text: str = ""
    answers: str = ""
    is_forwarded: bool = False


@dataclass
class Ledger:
    """All observations outside the service, written by several threads."""

    accepted: list[AcceptedEmail] = field(default_factory=list)
    suppressions: list[SuppressedAddress] = field(default_factory=list)
    endpoints: list[RegisteredEndpoint] = field(default_factory=list)
    messages: list[ReceivedMessage] = field(default_factory=list)
    requests: list[WebhookRequest] = field(default_factory=list)
    # Recipient ids whose bounce the service acknowledged with a 250.
    reports: set[str] = field(default_factory=set)
    # By Message-ID and recipient.
    received: dict[tuple[str, str], AcknowledgedMessage] = field(default_factory=dict)
    # A word per workspace that occurs in all its emails.
    markers: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def record_accepted(self, email_id: str, *, workspace: str, addresses: tuple[str, ...]) -> AcceptedEmail:
        email = AcceptedEmail(email_id, workspace, addresses)
        with self.lock:
            self.accepted.append(email)
        return email

    def record_received(self, source: bytes, *, message_id: str, recipients: Mapping[str, str], **facts: Any) -> None:
        """Record a message. recipients: the workspaces of its acknowledged addresses. facts: of AcknowledgedMessage."""
        digest = hashlib.sha256(source).hexdigest()
        for address, workspace in recipients.items():
            message = AcknowledgedMessage(message_id, address, workspace, len(source), digest, **facts)
            self.received[message_id, address] = message

    def record_cancelled(self, email: AcceptedEmail) -> None:
        email.cancelled_at = time.time()

    def record_suppressed(self, workspace: str, address: str) -> None:
        with self.lock:
            self.suppressions.append(SuppressedAddress(workspace, address, time.time()))
