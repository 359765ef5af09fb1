"""The queue of messages to read, the unread rows of `receiving_message`, divided among workspaces.

Each workspace with due messages gets an equal share of a claim; those of one that was sent thousands wait for each
other only (docs/decisions/0234).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from core.lib.sql import run, run_replanned
from core.lib.worker.lease_queue import FIRST, Claim, LeaseQueue, SharedLeaseQueue, Turn
from core.lib.worker.leases import LEASE_SECONDS
from receiving.states import MAX_JOINT_CLAIMS, SMALL_BYTES

TABLE = "receiving_message"
UNREAD = "read_at IS NULL"
DUE = "due_at <= statement_timestamp()"
COLUMNS = ("size", "workspace_id")
# The time from each claim alone to the next one, in leases of LEASE_SECONDS: 11 minutes at least, nearly 3 hours by
# default. Workers that die for other reasons for some minutes do not use up all of them, and one message does not end
# workers for long (docs/decisions/0234).
ALONE_LEASES = (2, 8, 32, 128, 1)
# Then it is given up: its header alone is read, in a process of its own.
MAX_READINGS = MAX_JOINT_CLAIMS + len(ALONE_LEASES)
# If even that ends the workers, it is published without it.
MAX_ATTEMPTS = MAX_READINGS + 2

QUEUE = LeaseQueue(table=TABLE, condition=UNREAD, columns=COLUMNS)


def _shared(condition: str) -> SharedLeaseQueue:
    return SharedLeaseQueue(
        table=TABLE,
        condition=UNREAD,
        columns=COLUMNS,
        group="workspace_id",
        ready=f"{UNREAD} AND attempts < {MAX_JOINT_CLAIMS} AND {condition} AND {DUE}",
        claim_changes="",
    )


def _claim(queue: SharedLeaseQueue) -> str:
    """Return a statement that leases messages: equal shares, at most %(cap)s in flight for one workspace."""
    return f"""
WITH RECURSIVE {queue.ready_groups}, shares AS (
    SELECT workspace_id, least(remaining, (%(limit)s + count(*) OVER () - 1) / count(*) OVER ()) AS share
      FROM (SELECT ready.workspace_id, coalesce(used.remaining, %(cap)s) AS remaining
              FROM ready
              LEFT JOIN LATERAL (
                SELECT remaining FROM unnest(%(in_flight)s::uuid[], %(remaining)s::int[])
                                   AS u (workspace_id, remaining)
                 WHERE u.workspace_id = ready.workspace_id LIMIT 1) used ON true
             WHERE coalesce(used.remaining, %(cap)s) > 0 LIMIT %(limit)s) able
)
{queue.claim_shares_sql}, (SELECT count(*) FROM shares)
"""  # noqa: S608 - constants


CLAIM_SMALL = _claim(_shared(f"size <= {SMALL_BYTES}"))
CLAIM_LARGE = _claim(_shared(f"size > {SMALL_BYTES} AND size <= %(most_bytes)s"))
ALONE = f"attempts >= {MAX_JOINT_CLAIMS}"
HAS_ALONE = f"SELECT 1 FROM {TABLE} WHERE {UNREAD} AND {ALONE} AND {DUE} LIMIT 1"  # noqa: S608 - constants
# An array has the index 1 first.
LEASES = f"coalesce((ARRAY{[*ALONE_LEASES]})[p.attempts - {MAX_JOINT_CLAIMS - 1}], 1)"
ALONE_QUEUE = replace(QUEUE, condition=f"{UNREAD} AND {ALONE}", lease_seconds=f"{LEASE_SECONDS} * {LEASES}")


@dataclass(frozen=True)
class MessageClaim(Claim):
    """A leased message."""

    size: int
    workspace: UUID

    @property
    def is_alone(self) -> bool:
        return self.attempt > MAX_JOINT_CLAIMS

    @property
    def is_given_up(self) -> bool:
        """Whether the header alone is read."""
        return self.attempt > MAX_READINGS


@dataclass(frozen=True)
class ReadingShares:
    """Equal shares for the workspaces with due messages.

    statement: CLAIM_SMALL or CLAIM_LARGE.
    cap: messages of one workspace that this process may have in flight.
    in_flight: the current number, by workspace.
    most_bytes: the size of the largest message.
    """

    statement: str
    cap: int
    in_flight: Mapping[UUID, int]
    most_bytes: int = SMALL_BYTES

    def claim_turn(self, limit: int, *, after: UUID, claimed: Sequence[MessageClaim] = ()) -> Turn[MessageClaim]:
        """Lease messages; see core.lib.worker.lease_queue.FairnessRule."""
        rows = run_replanned(self.statement, self._parameters(limit, after=after, claimed=claimed))
        claims = [MessageClaim(*row) for *row, _ in rows]
        served = {claim.workspace for claim in claims}
        is_complete_round = len(served) == (rows[0][-1] if rows else 0) < limit
        return claims, FIRST if is_complete_round else max(served)

    def _parameters(self, limit: int, *, after: UUID, claimed: Sequence[MessageClaim]) -> dict[str, Any]:
        in_flight = Counter(self.in_flight) + Counter(claim.workspace for claim in claimed)
        return {
            "limit": limit,
            "after": after,
            "cap": self.cap,
            "in_flight": [*in_flight],
            "remaining": [max(self.cap - count, 0) for count in in_flight.values()],
            "most_bytes": self.most_bytes,
        }


def has_alone() -> bool:
    """Return whether a message is due that is claimed alone."""
    return bool(run(HAS_ALONE))


def claim_alone() -> list[MessageClaim]:
    return [MessageClaim(*row) for row in ALONE_QUEUE.claim_due(1)]
