"""Limits of an SMTP server's sessions (docs/decisions/0170)."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol

from core.lib.network.address_guard import unwrap
from core.lib.network.client_address import client_network

TOO_MANY_CONNECTIONS = "421 4.7.0 Too many connections"
TOO_SLOW = "421 4.4.2 The message arrives too slowly"


@dataclass(frozen=True)
class SessionLimits:
    """Limits of one session and of all sessions together. RFC 5321, 4.5.3.2.7: idle timeout of at least 5 minutes.

    rcpt_seconds: the time from the connection to the first accepted recipient.
    crowded_idle_seconds: after this time without a command, a session can be ended for a new one when there are too
    many.
    arrival_bytes: bytes of a message that must arrive in each arrival_seconds while at most half of the sessions are
    in use. The more sessions there are, the more bytes, up to crowded_times as many.
    patience_seconds: how long a session with a recipient may be slower than that before it can be ended for others.
    sessions_per_peer: sessions of one IPv4 address or IPv6 /64.
    new_sessions_per_peer: those of them that are greeted and have no accepted recipient yet; others wait for their
    greeting.
    sessions_per_owner: those that `assign` counts.
    new_lines: lines of a session before its first accepted recipient.
    """

    message_bytes: int = 1024 * 1024
    lines: int = 50_000
    line_bytes: int = 16 * 1024
    idle_seconds: float = 300.0
    session_seconds: float = 1_200.0
    rcpt_seconds: float = 30.0
    crowded_idle_seconds: float = 60.0
    arrival_seconds: float = 30.0
    arrival_bytes: int = 32 * 1024
    crowded_times: int = 16
    patience_seconds: float = 10.0
    sessions: int = 400
    sessions_per_peer: int = 10
    new_sessions_per_peer: int = 16
    sessions_per_owner: int = 40
    messages: int = 200
    refusals: int = 20
    other_commands: int = 20
    new_lines: int = 2_000

    @property
    def crowded_bytes_per_second(self) -> float:
        """The least rate of a message when all sessions are in use."""
        return self.arrival_bytes / self.arrival_seconds * self.crowded_times

    @property
    def commands(self) -> dict[str, int]:
        """Return how often a session may use each command; "*" stands for all others."""
        per_message = dict.fromkeys(("MAIL", "RCPT", "DATA", "RSET"), 2 * self.messages)
        return {**per_message, "*": self.other_commands}


class LimitedSession(Protocol):
    """The part of a session that the limiter needs.

    bytes_per_second: of the message that it sends or could send; infinite if nothing is known of it yet, and while the
    server itself works.
    memory_owner, taken_bytes: whose share of the memory its message uses, and how much.
    """

    @property
    def idle_seconds(self) -> float: ...

    @property
    def can_end_for_others(self) -> bool: ...

    @property
    def bytes_per_second(self) -> float: ...

    @property
    def memory_owner(self) -> str: ...

    @property
    def taken_bytes(self) -> int: ...

    def end(self, status: str) -> None: ...


def network_of(peer: str) -> str:
    """Return the key of one client: an IPv4 address, or the /64 of an IPv6 address; other texts unchanged."""
    try:
        return client_network(unwrap(ip_address(peer)))
    except ValueError:
        return peer
