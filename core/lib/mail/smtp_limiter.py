"""Shares of an SMTP server's sessions: of all, of one network, and of one owner, such as a workspace.

The last fifth of each is for networks that have none of them. See docs/decisions/0170 and 0295.
"""

from collections import Counter
from collections.abc import Collection
from weakref import WeakValueDictionary

from core.lib.mail.smtp_limits import TOO_MANY_CONNECTIONS, TOO_SLOW, LimitedSession, SessionLimits
from core.lib.mail.smtp_turns import NewSessions

ALL = "all"
# The part of all sessions, and of those of an owner, that is reserved for networks without one.
RESERVED = 5


class ConnectionLimiter:
    """The open sessions of a server, by their holders: all clients, a network, an owner.

    refused: sessions that were not allowed or ended for others, by the share: all, address, owner.
    """

    def __init__(self, limits: SessionLimits) -> None:
        self.limits = limits
        self.refused: Counter[str] = Counter()
        self._holders: dict[LimitedSession, list[str]] = {}
        self._counts: Counter[str] = Counter()
        self._new_sessions: WeakValueDictionary[str, NewSessions] = WeakValueDictionary()

    def __len__(self) -> int:
        return self._counts[ALL]

    def open(self, session: LimitedSession, network: str) -> bool:
        """Add a new session; return False if a limit is reached.

        If there are too many sessions, the one that has been idle for longest ends, so that silent clients do not shut
        out others. A session with a recipient is kept, unless it has been idle for a while; if there is none to end,
        the slowest one ends.
        """
        if self._counts[network] >= self.limits.sessions_per_peer:
            self.refused["address"] += 1
            return False
        if not self._make_room(ALL, network, self.limits.sessions, share="all"):
            return False
        self._holders[session] = [ALL, network]
        self._counts.update((ALL, network))
        return True

    def assign(self, session: LimitedSession, owner: str) -> bool:
        """Count an open session for its owner, too; return False if the owner's share is used up.

        Then another session of the owner ends, as in `open`.
        """
        if session not in self._holders:
            return True
        holders = self._holders[session]
        if not self._make_room(owner, holders[1], self.limits.sessions_per_owner, share="owner"):
            return False
        holders.append(owner)
        self._counts[owner] += 1
        return True

    def close(self, session: LimitedSession) -> None:
        for holder in self._holders.pop(session, ()):
            self._counts[holder] -= 1
            if not self._counts[holder]:
                del self._counts[holder]

    def new_sessions(self, network: str) -> NewSessions:
        """Return the new sessions of a network; each of them holds a reference to them."""
        return self._new_sessions.setdefault(network, NewSessions(self.limits.new_sessions_per_peer))

    @property
    def least_arrival_bytes(self) -> float:
        """The bytes of a message that must arrive in arrival_seconds now."""
        half = self.limits.sessions / 2
        crowding = min(max(len(self) - half, 0) / half, 1)
        return self.limits.arrival_bytes * (1 + crowding * (self.limits.crowded_times - 1))

    def end_for_memory(self, waiting: LimitedSession, *, owner: str, more_than: int) -> bool:
        """End the slowest session that uses memory, for one that needs some; return False if there is none.

        owner: whose share of the memory is used up; empty for all of it.
        more_than: the bytes that a session must exceed so that its end is of use.
        """
        return self._end_slowest(
            [
                session
                for session in self._holders
                if session is not waiting and session.taken_bytes > more_than and owner in {"", session.memory_owner}
            ]
        )

    def _make_room(self, holder: str, network: str, limit: int, *, share: str) -> bool:
        used = self._counts[holder]
        if used < limit - limit // RESERVED or (used < limit and not self._has_both(holder, network)):
            return True
        self.refused[share] += 1
        return self._end_one([session for session, holders in self._holders.items() if holder in holders])

    def _has_both(self, holder: str, network: str) -> bool:
        """Return whether a network has a session of a holder."""
        return any(holder in holders and network in holders for holders in self._holders.values())

    def _end_one(self, sessions: Collection[LimitedSession]) -> bool:
        idle = [session for session in sessions if session.can_end_for_others]
        if not idle:
            return self._end_slowest(sessions)
        self._end(max(idle, key=lambda session: session.idle_seconds), TOO_MANY_CONNECTIONS)
        return True

    def _end_slowest(self, sessions: Collection[LimitedSession]) -> bool:
        """End the slowest session, if it is slower than a message must be when all sessions are in use."""
        slowest = min(sessions, key=lambda session: session.bytes_per_second, default=None)
        if slowest is None or slowest.bytes_per_second >= self.limits.crowded_bytes_per_second:
            return False
        self._end(slowest, TOO_SLOW)
        return True

    def _end(self, session: LimitedSession, reply: str) -> None:
        self.close(session)
        session.end(reply)
