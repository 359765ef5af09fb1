"""Shares of an SMTP server's sessions: of all, of one network, and of one owner, such as a workspace.

See docs/decisions/0170.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol
from weakref import WeakValueDictionary

from lib.network.address_guard import unwrap
from lib.network.client_address import client_network

TOO_MANY_CONNECTIONS = "421 4.7.0 Too many connections"
ALL = "all"


@dataclass(frozen=True)
class SessionLimits:
    """Limits of one session and of all sessions together. RFC 5321, 4.5.3.2.7: idle timeout of at least 5 minutes.

    rcpt_seconds: from the connection to the first accepted recipient. crowded_idle_seconds: after this time without a
    command, a session can be ended for a new one when there are too many.
    arrival_bytes: what must arrive of a message in each arrival_seconds.
    sessions_per_peer: of one IPv4 address or IPv6 /64. new_sessions_per_peer: those of them that are greeted and have
    no accepted recipient yet; others wait for their greeting. sessions_per_owner: those that `assign` counts.
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
    sessions: int = 50
    sessions_per_peer: int = 10
    new_sessions_per_peer: int = 16
    sessions_per_owner: int = 10
    messages: int = 200
    refusals: int = 20
    other_commands: int = 20
    new_lines: int = 2_000

    @property
    def commands(self) -> dict[str, int]:
        """Return how often a session may use each command; "*" stands for all others."""
        per_message = dict.fromkeys(("MAIL", "RCPT", "DATA", "RSET"), 2 * self.messages)
        return {**per_message, "*": self.other_commands}


class LimitedSession(Protocol):
    """What the limiter needs of a session."""

    @property
    def idle_seconds(self) -> float: ...

    @property
    def can_end_for_others(self) -> bool: ...

    def end(self, status: str) -> None: ...


class ConnectionLimiter:
    """The open sessions of a server, by their holders: all clients, a network, an owner.

    refused: sessions that were not allowed or ended for others, by the share: all, address, owner.
    """

    def __init__(self, limits: SessionLimits) -> None:
        self.limits = limits
        self.refused: Counter[str] = Counter()
        self._holders: dict[LimitedSession, list[str]] = {}
        self._counts: Counter[str] = Counter()
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def __len__(self) -> int:
        return self._counts[ALL]

    def open(self, session: LimitedSession, network: str) -> bool:
        """Add a new session; return False if a limit is reached.

        If there are too many sessions, the one that has been idle for longest ends, so that silent clients do not shut
        out others. A session with a recipient is kept, unless it has been idle for a while.
        """
        if self._counts[network] >= self.limits.sessions_per_peer:
            self.refused["address"] += 1
            return False
        if not self._make_room(ALL, self.limits.sessions, share="all"):
            return False
        self._holders[session] = [ALL, network]
        self._counts.update((ALL, network))
        return True

    def assign(self, session: LimitedSession, owner: str) -> bool:
        """Count an open session for its owner, too; return False if the owner's share is used up.

        Then the owner's session that has been idle for longest ends, as in `open`.
        """
        if not self._make_room(owner, self.limits.sessions_per_owner, share="owner"):
            return False
        if session in self._holders:
            self._holders[session].append(owner)
            self._counts[owner] += 1
        return True

    def close(self, session: LimitedSession) -> None:
        for holder in self._holders.pop(session, ()):
            self._counts[holder] -= 1
            if not self._counts[holder]:
                del self._counts[holder]

    def turn(self, network: str) -> asyncio.Semaphore:
        """Return the semaphore that a session acquires before its greeting, until it is established."""
        return self._turns.setdefault(network, asyncio.Semaphore(self.limits.new_sessions_per_peer))

    def _make_room(self, holder: str, limit: int, *, share: str) -> bool:
        if self._counts[holder] < limit:
            return True
        self.refused[share] += 1
        idle = [
            session for session, holders in self._holders.items() if holder in holders and session.can_end_for_others
        ]
        if not idle:
            return False
        longest = max(idle, key=lambda session: session.idle_seconds)
        self.close(longest)
        longest.end(TOO_MANY_CONNECTIONS)
        return True


def network_of(peer: str) -> str:
    """Return what counts as one client: an IPv4 address, or the /64 of an IPv6 address; other texts unchanged."""
    try:
        return client_network(unwrap(ip_address(peer)))
    except ValueError:
        return peer
