"""The queue of recipients with work left, `emails_pending`, and its division among workspaces.

A claim moves entries from ready to leased; emails.sending.outcomes, `park` and `release` move them to waiting or delete
them; `promote` moves due entries to ready: schedules, retries and the expired leases of dead workers.
See docs/decisions/0005 for why the queue is a separate table.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.conf import settings

from core.delivery.transports.transports_file import DEFAULT
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run_replanned
from core.lib.worker.lease_queue import FIRST, Claim, SharedLeaseQueue, Turn
from core.lib.worker.leases import LEASE_SECONDS
from core.lib.worker.stages import Stage
from emails.sending.retries import max_age
from emails.states import WaitCause
from streams.models import LAST_RANK, NORMAL_RANK

PROMOTE_BATCH_SIZE = 1000
# An entry whose claims end three times without an outcome probably kills its workers.
MAX_LOST_CLAIMS = 3
# Entries leased together with such an entry are retried at random times, so that only the bad one fails again.
SPREAD_SECONDS = 60

QUEUE = SharedLeaseQueue(
    table="emails_pending",
    key="recipient_id",
    group="workspace_id",
    rank="rank",
    last_rank=LAST_RANK,
    columns=("workspace_id", "since", "lost", "handed_to", "rank", "pair", "paced_since"),
    lost="lost",
    timed=(Stage.WAITING, Stage.LEASED, Stage.SCHEDULED, Stage.PACED),
    claim_changes=f"stage = {Stage.LEASED}, waits_for = NULL, handed_to = coalesce(handed_to, %(unassigned)s), ",
)
# handed_to of a claimed entry to which no named transport is assigned yet; NULL stands for the only one.
UNASSIGNED = ""
# Changes an entry that returns before a transport was assigned.
FORGET_UNASSIGNED = f", handed_to = nullif(handed_to, '{UNASSIGNED}')"
renew = QUEUE.renew
# The element at the entry's place in the array; a batch has at most a hundred.
PARK_SECONDS = "(%(seconds)s::float[])[array_position(%(keys)s::uuid[], claimed.key)]"
PARK_WAIT = f"CASE WHEN {PARK_SECONDS} > 0 THEN {PARK_SECONDS} ELSE least(2 ^ (parked + 1), 60) END"
PARK_CHANGES = f""", pair = NULL, paced_since = CASE WHEN pair IS NULL THEN paced_since END,
 parked = CASE WHEN {PARK_SECONDS} > 0 THEN 0 ELSE least(parked + 1, 6) END,
 waits_for = (%(causes)s::text[])[array_position(%(keys)s::uuid[], claimed.key)]"""

# How long an entry may wait for a pace by its route; null for any time.
PACED_AT_MOST = "make_interval(secs => (%(most)s::float[])[array_position(%(keys)s::uuid[], claimed.key)])"
# due_at is the time at which an entry is too old to wait, or may go to its next transport: one that could not is looked
# at again each time that its wait has doubled (docs/decisions/0370).
PACE_CHANGES = f"""
stage = {Stage.PACED}, paced_since = coalesce(paced_since, now()),
due_at = least(since + %(max_age)s, CASE
    WHEN {PACED_AT_MOST} IS NULL THEN NULL
    WHEN pair IS NULL AND paced_since IS NOT NULL THEN now() + (now() - paced_since)
    ELSE greatest(coalesce(paced_since, now()) + {PACED_AT_MOST}, now()) END),
attempts = attempts - 1, parked = 0,
waits_for = '{WaitCause.RECEIVER_PACE}', pair = (%(pairs)s::int[])[array_position(%(keys)s::uuid[], claimed.key)],
handed_to = CASE WHEN (%(pinned)s::boolean[])[array_position(%(keys)s::uuid[], claimed.key)] THEN handed_to END
"""

# Emails of low priority leave a quarter of a workspace's sessions to its others.
LAST_SHARE = 0.75
# Each workspace with ready entries gets an equal share, one that uses its cap of sessions gets none.
CLAIM = f"""
WITH RECURSIVE {QUEUE.ready_groups}, shares AS (
    SELECT workspace_id, least(remaining, (%(limit)s + count(*) OVER () - 1) / count(*) OVER ()) AS share, last_share
      FROM (SELECT ready.workspace_id, coalesce(used.remaining, %(cap)s) AS remaining,
                   coalesce(used.last_remaining, %(last_cap)s) AS last_share
              FROM ready
              CROSS JOIN LATERAL (
                SELECT coalesce(suspended_at, deletes_at) AS stopped_at FROM workspaces_workspace
                 WHERE id = ready.workspace_id LIMIT 1) w
              LEFT JOIN LATERAL (
                SELECT remaining, last_remaining
                  FROM unnest(%(in_flight)s::uuid[], %(remaining)s::int[], %(last_remaining)s::int[])
                       AS u (workspace_id, remaining, last_remaining)
                 WHERE u.workspace_id = ready.workspace_id LIMIT 1) used ON true
             WHERE w.stopped_at IS NULL AND coalesce(used.remaining, %(cap)s) > 0
               AND NOT EXISTS (SELECT FROM emails_hold) LIMIT %(limit)s) unsuspended
)
{QUEUE.claim_shares_sql}, (SELECT count(*) FROM shares)
"""  # noqa: S608 - constants
# A transport that was assigned may have the message, and so may the only one.
EXPIRED_TRANSPORT = f"nullif(coalesce(p.handed_to, '{DEFAULT}'), '{UNASSIGNED}')"
# A scheduled entry without the approval that it needs.
IS_UNAPPROVED = f"p.waits_for IS NOT DISTINCT FROM '{WaitCause.APPROVAL}'"
# An expired lease ends the attempt: the entry is ready at once; the second time after a random delay; the third time
# it is leased to this process, which records its failure. Nothing is promoted while sending is paused; expired entries
# are left to EXPIRE (emails.sending.scheduling).
PROMOTE = f"""
WITH {
    QUEUE.due_rows(
        f"stage, stage = {Stage.LEASED} AND lost + 1 >= {MAX_LOST_CLAIMS} AS is_given_up",
        condition="NOT EXISTS (SELECT FROM emails_hold) AND (expires_at <= now()) IS NOT TRUE",
    )
}
UPDATE emails_pending p
   SET stage = CASE WHEN is_given_up THEN {Stage.LEASED}
                    WHEN due.stage = {Stage.LEASED} AND lost > 0 THEN {Stage.WAITING}
                    WHEN {IS_UNAPPROVED} THEN {Stage.UNAPPROVED} ELSE {Stage.READY} END,
       due_at = now() + make_interval(secs => CASE WHEN is_given_up THEN {LEASE_SECONDS}
                WHEN due.stage = {Stage.LEASED} AND lost > 0 THEN random() * {SPREAD_SECONDS} ELSE 0 END),
       fence = CASE WHEN is_given_up THEN fence + 1 ELSE fence END,
       lost = CASE WHEN due.stage = {Stage.LEASED} THEN lost + 1 ELSE lost END,
       handed_to = CASE WHEN due.stage = {Stage.LEASED} THEN {EXPIRED_TRANSPORT} ELSE p.handed_to END,
       pair = CASE WHEN due.stage = {Stage.PACED} THEN NULL ELSE p.pair END
  FROM due WHERE p.recipient_id = due.recipient_id
RETURNING due.stage, p.stage, {QUEUE.claim_columns}
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class EmailClaim(Claim):
    """A leased recipient.

    lost: consecutive earlier claims that ended without an outcome.
    handed_to: the transport that may have taken the message at an earlier attempt; empty or None if none has.
    rank: the priority of its stream.
    pair: the number of the ReceiverPace for which it was released, if it waited for one.
    paced_since: when it began to wait for a pace; None if it did not since its last attempt.
    """

    workspace: UUID
    since: datetime
    lost: int
    handed_to: str | None = None
    rank: int = NORMAL_RANK
    pair: int | None = None
    paced_since: datetime | None = None

    @property
    def has_waited(self) -> bool:
        """Whether it waited for a pace until its time was over, and was not released."""
        return self.paced_since is not None and self.pair is None

    @property
    def is_last(self) -> bool:
        return self.rank == LAST_RANK

    @cached_property
    def recipient_id(self) -> str:
        return from_uuid(self.key)

    @cached_property
    def workspace_id(self) -> str:
        return from_uuid(self.workspace, prefix="ws_")


@dataclass(frozen=True)
class PromotedEntry:
    """A due entry, with its stage before and after. One that is LEASED afterwards must be recorded as failed."""

    from_stage: int
    to_stage: int
    claim: EmailClaim


@dataclass(frozen=True)
class WorkspaceShares:
    """Equal shares for the workspaces with ready entries.

    cap: entries of one workspace that this process may have in flight.
    in_flight: the current number, by workspace.
    last_in_flight: those of them with low priority.
    """

    cap: int
    in_flight: Mapping[str, int]
    last_in_flight: Mapping[str, int] = field(default_factory=dict)

    @property
    def last_cap(self) -> int:
        return max(int(self.cap * LAST_SHARE), 1)

    @property
    def is_exhausted(self) -> bool:
        """Whether a workspace may have more entries than it may get now."""
        most, last = (max(counts.values(), default=0) for counts in (self.in_flight, self.last_in_flight))
        return most >= self.cap or last >= self.last_cap

    def claim_turn(self, limit: int, *, after: UUID, claimed: Sequence[EmailClaim] = ()) -> Turn[EmailClaim]:
        """Lease entries; see core.lib.worker.lease_queue.FairnessRule."""
        rows = run_replanned(CLAIM, self.parameters(limit, after=after, claimed=claimed))
        claims = [EmailClaim(*row) for *row, _ in rows]
        served = {claim.workspace for claim in claims}
        is_complete_round = len(served) == (rows[0][-1] if rows else 0) < limit
        return claims, FIRST if is_complete_round else max(served)

    def parameters(self, limit: int, *, after: UUID, claimed: Sequence[EmailClaim] = ()) -> dict[str, Any]:
        """Return the parameters of CLAIM."""
        in_flight = Counter(self.in_flight) + Counter(claim.workspace_id for claim in claimed)
        last = Counter(self.last_in_flight) + Counter(claim.workspace_id for claim in claimed if claim.is_last)
        return {
            "limit": limit,
            "after": after,
            "cap": self.cap,
            "in_flight": [to_uuid(workspace_id, prefix="ws_") for workspace_id in in_flight],
            "remaining": [max(self.cap - count, 0) for count in in_flight.values()],
            "last_cap": self.last_cap,
            "last_remaining": [max(self.last_cap - last[workspace_id], 0) for workspace_id in in_flight],
            "unassigned": UNASSIGNED if settings.TRANSPORTS.is_named else None,
        }


def promote() -> list[PromotedEntry]:
    """Make due entries ready, and lease those that reached MAX_LOST_CLAIMS so that they can be failed."""
    rows = run_replanned(PROMOTE, {"limit": PROMOTE_BATCH_SIZE})
    return [PromotedEntry(before, after, EmailClaim(*row)) for before, after, *row in rows]


def park(waits: Mapping[EmailClaim, tuple[float, str]]) -> list[str]:
    """Set entries aside that cannot be sent now. No attempt is used.

    waits: seconds until an entry is claimed again, and the WaitCause; 0 if its destination is at its limit, which
    stands for 2 s, doubling to 60 s.
    Returns the workspace of each entry whose lease this process still had.
    """
    free = {claim: wait for claim, wait in waits.items() if not claim.handed_to}
    pinned = {claim: wait for claim, wait in waits.items() if claim.handed_to}
    parked = _put_back(free, changes=f"{PARK_CHANGES}, handed_to = NULL") if free else []
    if pinned:
        parked += _put_back(pinned, changes=PARK_CHANGES)
    return [claim.workspace_id for claim in parked]


def _put_back(waits: Mapping[EmailClaim, tuple[float, str]], *, changes: str) -> list[EmailClaim]:
    seconds, causes = map(list, zip(*waits.values(), strict=True))
    return QUEUE.put_back(waits.keys(), wait=PARK_WAIT, changes=changes, seconds=seconds, causes=causes)


def wait_for_pace(waits: Mapping[EmailClaim, tuple[int, float]]) -> list[str]:
    """Let entries wait for the pace of a receiver until they are released, or are too old. No attempt is used.

    waits: the number of a ReceiverPace, and the seconds after which the next transport may get it; 0 without limit.
    Returns the workspace of each entry whose lease this process still had.
    """
    values = {
        "pairs": [pair for pair, _ in waits.values()],
        "most": [seconds or None for _, seconds in waits.values()],
        "pinned": [bool(claim.handed_to) for claim in waits],
        "max_age": max_age(),
    }
    return [claim.workspace_id for claim in QUEUE.update_leased(waits.keys(), PACE_CHANGES, **values)]


def give_back(claims: Collection[EmailClaim]) -> None:
    """Make the entries of claims that were never performed ready again; of those that were lost, count no crash."""
    QUEUE.give_back([claim for claim in claims if not claim.handed_to], changes=", handed_to = NULL")
    QUEUE.give_back([claim for claim in claims if claim.handed_to])


def release(claims: Collection[EmailClaim], *, seconds: float) -> list[str]:
    """Give leases back for `seconds` when memory is full. No attempt is used. Returns the same as `park`."""
    changes = f"{FORGET_UNASSIGNED}, waits_for = '{WaitCause.MEMORY}'"
    released = QUEUE.put_back(claims, wait="%(seconds)s", changes=changes, seconds=seconds)
    return [claim.workspace_id for claim in released]
