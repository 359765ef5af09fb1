"""Shares of an SMTP server's sessions: of all, of one network, and of one owner, such as a workspace.

See docs/decisions/0170.
"""

from collections import Counter
from weakref import WeakValueDictionary

from core.lib.mail.smtp_limits import TOO_MANY_CONNECTIONS, LimitedSession, SessionLimits
from core.lib.mail.smtp_turns import NewSessions

ALL = "all"


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

    def new_sessions(self, network: str) -> NewSessions:
        """Return the new sessions of a network; each of them holds a reference to them."""
        return self._new_sessions.setdefault(network, NewSessions(self.limits.new_sessions_per_peer))

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
