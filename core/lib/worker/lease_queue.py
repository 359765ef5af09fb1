"""Lease queues: tables whose rows are claimed for a while, then deleted or put back (docs/decisions/0072).

A claim increments the fence of a row, and its later statements change only rows with that fence: a worker that lost
its lease changes nothing. All times are the database's. SQL in arguments is made of constants; values are parameters.
"""
# ruff: noqa: S608 - constants

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from django.db import Error, transaction

from core.lib.sql import run, run_replanned
from core.lib.worker.leases import LEASE_SECONDS
from core.lib.worker.stages import Stage

# The position before all groups.
FIRST = UUID(int=0)


@dataclass(frozen=True)
class Claim:
    """A row leased to this process; the fence distinguishes this lease from later ones. attempt: from 1."""

    key: Any
    fence: int
    attempt: int


C = TypeVar("C", bound=Claim)
# Claims, and the last group served; FIRST if no further group has ready rows.
Turn = tuple[list[C], UUID]


@dataclass(frozen=True, kw_only=True)
class LeaseQueue:
    """A table whose rows are claimed once they are due; a claim moves due_at to the end of the lease.

    condition: true for the rows on the queue.
    columns: returned by a claim after key, fence and attempts.
    lost: the column that counts claims without an outcome, by default attempts.
    lease_seconds: a number, or SQL for the row `p` before its claim.
    """

    table: str
    key: str = "id"
    key_type: str = "uuid"
    due_at: str = "due_at"
    fence: str = "fence"
    attempts: str = "attempts"
    condition: str = "true"
    columns: tuple[str, ...] = ()
    lost: str = "attempts"
    lease_seconds: float | str = LEASE_SECONDS

    def claim_due(self, limit: int, *, condition: str = "true") -> list[tuple[Any, ...]]:
        """Lease up to limit due rows. Any number of processes may do this at once."""
        picked = f"""
    SELECT ctid FROM {self.table}
     WHERE {self.condition} AND {condition} AND {self.due_at} <= statement_timestamp()
     ORDER BY {self.due_at} LIMIT %(limit)s FOR UPDATE SKIP LOCKED"""
        return run(self.claim_sql(picked), {"limit": limit})

    def renew(self, claims: Collection[C]) -> list[C]:
        """Renew the leases that this process still has, and return their claims."""
        lease_end = f"now() + make_interval(secs => {self.lease_seconds})"
        return self.update_leased(claims, f"{self.due_at} = greatest({self.due_at}, {lease_end})")

    def update_leased(self, claims: Collection[C], changes: str, **values: Any) -> list[C]:
        """Change the rows whose lease this process still has, and return their claims."""
        by_key_and_fence = _by_key_and_fence(claims)
        sql = f"UPDATE {self.table} p SET {changes} FROM {self._claimed} RETURNING claimed.key, claimed.fence"
        return [by_key_and_fence[row] for row in run(sql, {**values, **_keys_and_fences(claims)})]

    @transaction.atomic
    def give_back(self, claims: Collection[C], *, changes: str = "") -> None:
        """Return the attempts of claims that ended without a crash by their rows (docs/decisions/0276).

        A row that was not claimed again is due at once. Of one that was, only `lost` changes.
        changes: further ones of the former, in SQL that begins with a comma.
        """
        fewer = f"{self.attempts} = greatest({self.attempts} - 1, 0)"
        freed = {*self.update_leased(claims, f"{self._freed}, {fewer}{changes}")}
        others = [claim for claim in claims if claim not in freed]
        # A fence that is also the counter must not repeat.
        if others and self.lost != self.fence:
            sql = f"""
UPDATE {self.table} p SET {self.lost} = greatest({self.lost} - 1, 0)
  FROM unnest(%(keys)s::{self.key_type}[], %(fences)s::int[]) AS claimed (key, fence)
 WHERE p.{self.key} = claimed.key AND {self._is_lost}"""
            run(sql, _keys_and_fences(others))

    def lock_claimed(self, claims: Collection[C]) -> dict[C, datetime]:
        """Lock the rows whose lease this process still has; return the database's time for each claim."""
        by_key_and_fence = _by_key_and_fence(claims)
        sql = f"SELECT claimed.key, claimed.fence, now() FROM {self.table} p, {self._claimed}"
        rows = run_replanned(f"{sql} ORDER BY p.{self.key} FOR UPDATE OF p", _keys_and_fences(claims))
        return {by_key_and_fence[key, fence]: now for key, fence, now in rows}

    def claim_sql(self, picked: str, *, changes: str = "") -> str:
        """Return a statement that leases the rows whose ctid the query `picked` returns.

        It locks them; locked rows do not move, so their ctid finds them without an index lookup.
        """
        counts = ", ".join(f"{column} = {column} + 1" for column in dict.fromkeys([self.fence, self.attempts]))
        return f"""
UPDATE {self.table} p
   SET {changes}{self.due_at} = statement_timestamp() + make_interval(secs => {self.lease_seconds}), {counts}
 WHERE p.ctid = ANY (ARRAY({picked}))
RETURNING {self.claim_columns}"""

    @property
    def claim_columns(self) -> str:
        return ", ".join(f"p.{column}" for column in (self.key, self.fence, self.attempts, *self.columns))

    @property
    def _freed(self) -> str:
        return f"{self.due_at} = now()"

    @property
    def _is_lost(self) -> str:
        return f"p.{self.fence} > claimed.fence AND {self.condition}"

    @property
    def _claimed(self) -> str:
        return f"""unnest(%(keys)s::{self.key_type}[], %(fences)s::int[]) AS claimed (key, fence)
 WHERE p.{self.key} = claimed.key AND p.{self.fence} = claimed.fence AND {self.condition}"""


@dataclass(frozen=True, kw_only=True)
class SharedLeaseQueue(LeaseQueue):
    """A lease queue whose ready rows are divided among groups, such as workspaces.

    Due rows become ready first; only ready rows are claimed. timed: the stages that end at due_at. A queue without
    stages has another condition for ready rows.
    """

    group: str
    # The column by which ready rows of a group are claimed before their due_at, and its value for the last ones: every
    # tenth claim takes some if there are any, and at most `last_share` of the CTE `shares`.
    rank: str = ""
    last_rank: int = 0
    timed: tuple[Stage, ...] = ()
    condition: str = f"stage = {Stage.LEASED}"
    # The condition of ready rows, and the changes of claimed ones, in SQL that ends with a comma.
    ready: str = f"stage = {Stage.READY}"
    claim_changes: str = f"stage = {Stage.LEASED}, "

    @property
    def ready_groups(self) -> str:
        """The CTE `ready`: the groups with ready rows above %(after)s, in order, and the due_at of the first row.

        A loose index scan: a million rows of a group cost no more than one. Each group is read separately, LIMIT 1: a
        join could return them in another order than by id, which the cursor relies on, and would read all of them
        first. So would a sort: 40 ms for ten thousand groups.
        """
        first, further = self._first_row("%(after)s"), self._first_row(f"ready.{self.group}")
        return f"ready AS (({first}) UNION ALL SELECT further.* FROM ready CROSS JOIN LATERAL ({further}) further)"

    def _first_row(self, after: str) -> str:
        return f"""
        SELECT {self.group}, due_at FROM {self.table}
         WHERE {self.ready} AND {self.group} > {after} ORDER BY {self.group}, {self._order} LIMIT 1"""

    @property
    def _order(self) -> str:
        return f"{self.rank}, due_at" if self.rank else "due_at"

    @property
    def claim_shares_sql(self) -> str:
        """A statement that leases up to %(limit)s ready rows, at most `share` of each group in the CTE `shares`."""
        rows = self._rows_of_share("ctid AS place", limit="shares.share")
        if self.rank:
            columns = f"ctid AS place, {self._order}"
            tenth, rest = "floor(shares.share / 10.0 + random())", f"= {self.last_rank}"
            parts = (
                self._rows_of_share(f"{columns}, 0 AS turn", limit=f"least({tenth}, shares.last_share)", rank=rest),
                self._rows_of_share(f"{columns}, 1 AS turn", limit="shares.share", rank=f"< {self.last_rank}"),
                self._rows_of_share(f"{columns}, 1 AS turn", limit="least(shares.share, shares.last_share)", rank=rest),
            )
            # The first part is in the third one as well.
            rows = f"""
        SELECT place FROM ({" UNION ALL ".join(f"SELECT * FROM ({part}) part" for part in parts)}) picked
         GROUP BY place, {self._order} ORDER BY min(turn), {self._order} LIMIT shares.share"""
        picked = f"""
    SELECT row.place FROM shares CROSS JOIN LATERAL ({rows}) row LIMIT %(limit)s"""
        return self.claim_sql(picked, changes=self.claim_changes)

    def _rows_of_share(self, columns: str, *, limit: str, rank: str = "") -> str:
        condition = f" AND {self.rank} {rank}" if rank else ""
        return f"""
        SELECT {columns} FROM {self.table}
         WHERE {self.ready} AND {self.group} = shares.{self.group}{condition}
         ORDER BY {self._order} LIMIT {limit} FOR UPDATE SKIP LOCKED"""

    def due_rows(self, columns: str = "stage", *, condition: str = "true") -> str:
        """The CTE `due`: locked rows whose wait, schedule or lease has ended, with their key and the columns."""
        return f"""due AS (
    SELECT {self.key}, {columns} FROM {self.table} WHERE {self.is_due} AND {condition}
     ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)"""

    @property
    def is_due(self) -> str:
        return f"stage IN ({', '.join(map(str, self.timed))}) AND due_at <= now()"

    @property
    def _freed(self) -> str:
        return f"stage = {Stage.READY}, due_at = now()"

    @property
    def _is_lost(self) -> str:
        return f"(p.fence > claimed.fence OR p.stage <> {Stage.LEASED})"

    def put_back(self, claims: Collection[C], *, wait: str, changes: str = "", **values: Any) -> list[C]:
        """Let rows wait without using an attempt; return the claims that were valid. wait: seconds, in SQL."""
        waiting = f"stage = {Stage.WAITING}, due_at = now() + make_interval(secs => {wait}), attempts = attempts - 1"
        return self.update_leased(claims, waiting + changes, **values)


class FairnessRule(Protocol[C]):
    """The division of a queue's ready rows among its groups."""

    def claim_turn(self, limit: int, *, after: UUID, claimed: Sequence[C]) -> Turn[C]:
        """Lease up to limit ready rows of the groups above `after`. claimed: claims of which the rule knows nothing."""


class Cursor(Generic[C]):
    """The position of a process's round robin over groups; it wraps, so that no group is always first."""

    def __init__(self) -> None:
        self.after = FIRST

    def claim(self, limit: int, rule: FairnessRule[C]) -> list[C]:
        """Lease up to limit rows of the groups after the position; if they have too few, also of those before it."""
        began_after = self.after
        claims, self.after = rule.claim_turn(limit, after=began_after, claimed=())
        if len(claims) < limit and began_after != FIRST:
            try:
                further, self.after = rule.claim_turn(limit - len(claims), after=FIRST, claimed=claims)
            except Error:
                # The caller must know of the first ones; its next statement shows whether the database responds.
                if not claims:
                    raise
            else:
                claims += further
        return claims


def _by_key_and_fence(claims: Collection[C]) -> dict[tuple[Any, ...], C]:
    return {(claim.key, claim.fence): claim for claim in claims}


def _keys_and_fences(claims: Collection[Claim]) -> dict[str, Any]:
    return {"keys": [claim.key for claim in claims], "fences": [claim.fence for claim in claims]}
