"""Paces of receivers in the database: the reports of workers, and their grants (docs/decisions/0362).

Each process reports its attempts at the pairs of source and receiver that it uses, about once a second, and reads its
grants until the next report. Entries that wait for a pace are in a separate stage, which costs nothing until
`release_due` makes some of them ready: the workspaces in turn, each by priority and age.
"""

import json
import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from core.counters import counters
from core.delivery.pacing.pace import PaceLimits, limits_at
from core.delivery.pacing.pairs import MOST_AT_ONCE, Pair, PairGrant, PairKey, PairReport
from core.delivery.pacing.volumes import day_of
from core.lib.ids import from_uuid
from core.lib.sql import run, run_replanned
from core.lib.worker import wakeup
from core.lib.worker.lease_queue import FIRST
from core.lib.worker.stages import Stage
from emails import queue_stats
from emails.models import ReceiverPace
from emails.pacing.database_thread import run_in_database_thread
from emails.sources.own_addresses import first_day, other_sources

# While entries wait.
RELEASE_EVERY_SECONDS = 1.0
# Pairs whose entries are released in one transaction.
MAX_PAIRS = 100
# Workspaces whose entries are released at a time.
MAX_WORKSPACES = 100

CREATE = """
INSERT INTO emails_receiverpace (source, receiver, pace, leases)
SELECT source, receiver, '{}', '{}' FROM unnest(%s::text[], %s::text[]) AS new (source, receiver)
 ORDER BY source, receiver ON CONFLICT DO NOTHING
"""
COLUMNS = "*, extract(epoch FROM clock_timestamp())::float AS now"
# The same order everywhere.
LOCK = f"""
SELECT {COLUMNS} FROM emails_receiverpace
 WHERE (source, receiver) IN (SELECT * FROM unnest(%s::text[], %s::text[])) ORDER BY id FOR UPDATE
"""  # noqa: S608 - constants
# The pairs of the other addresses of transports, which are read only.
READ = f"""
SELECT {COLUMNS} FROM emails_receiverpace WHERE (source, receiver) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
"""  # noqa: S608 - constants
LOCK_DUE = f"""
SELECT {COLUMNS} FROM emails_receiverpace WHERE release_at <= now() ORDER BY id LIMIT {MAX_PAIRS}
   FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - constants
SAVE = """
UPDATE emails_receiverpace p
   SET pace = new.pace::jsonb, leases = new.leases::jsonb, reserved = new.reserved::jsonb,
       updated_at = clock_timestamp(), day = today.day,
       accepted = CASE WHEN p.day = today.day THEN p.accepted ELSE 0 END + new.accepted,
       accepted_before = CASE today.day - p.day WHEN 0 THEN p.accepted_before WHEN 1 THEN p.accepted ELSE 0 END,
       began_on = new.began_on,
       slowed = CASE WHEN p.day = today.day THEN p.slowed ELSE 0 END + new.slowed,
       signal_at = CASE WHEN new.signal <> '' THEN now() ELSE p.signal_at END,
       signal = CASE WHEN new.signal <> '' THEN new.signal ELSE p.signal END
  FROM unnest(%s::int[], %s::text[], %s::text[], %s::text[], %s::int[], %s::int[], %s::text[], %s::date[])
       AS new (id, pace, leases, reserved, accepted, slowed, signal, began_on),
       (SELECT (now() AT TIME ZONE 'UTC')::date) AS today (day)
 WHERE p.id = new.id
"""
# `seconds` is null if nothing waits any more.
SAVE_RELEASE = """
UPDATE emails_receiverpace p
   SET pace = new.pace::jsonb, release_at = clock_timestamp() + make_interval(secs => new.seconds)
  FROM unnest(%s::int[], %s::text[], %s::float[]) AS new (id, pace, seconds) WHERE p.id = new.id
"""
# After the entries: a release that does not see them yet ends before this statement.
BEGIN_RELEASE = """
UPDATE emails_receiverpace SET release_at = coalesce(release_at, now())
 WHERE id IN (SELECT unnest(%s::int[]) ORDER BY 1)
"""
# Each workspace's next entries are found by the index, from a random one on: a single message goes to another one each
# time. Entries that no worker could claim are not released.
RELEASE = f"""
WITH RECURSIVE workspaces AS (
    (SELECT workspace_id, 1 AS place FROM emails_pending
      WHERE stage = {Stage.PACED} AND pair = %(pair)s AND workspace_id > %(after)s ORDER BY workspace_id LIMIT 1)
    UNION ALL
    SELECT further.workspace_id, workspaces.place + 1 FROM workspaces CROSS JOIN LATERAL (
        SELECT workspace_id FROM emails_pending
         WHERE stage = {Stage.PACED} AND pair = %(pair)s AND workspace_id > workspaces.workspace_id
         ORDER BY workspace_id LIMIT 1) further
     WHERE workspaces.place < {MAX_WORKSPACES}
), next AS (
    SELECT entry.recipient_id FROM workspaces
      JOIN workspaces_workspace w ON w.id = workspaces.workspace_id AND coalesce(suspended_at, deletes_at) IS NULL
     CROSS JOIN LATERAL (
        SELECT recipient_id, row_number() OVER (ORDER BY rank, since) AS turn FROM (
            SELECT recipient_id, rank, since FROM emails_pending
             WHERE stage = {Stage.PACED} AND pair = %(pair)s AND workspace_id = workspaces.workspace_id
             ORDER BY rank, since LIMIT (SELECT ceil(%(count)s::float / count(*))::int FROM workspaces)
               FOR UPDATE SKIP LOCKED) locked) entry
     ORDER BY entry.turn, workspaces.place LIMIT %(count)s
)
UPDATE emails_pending p SET stage = {Stage.READY}, due_at = now() FROM next WHERE p.recipient_id = next.recipient_id
RETURNING p.workspace_id
"""  # noqa: S608 - constants
HAS_WAITING = f"SELECT 1 FROM emails_pending WHERE stage = {Stage.PACED} AND pair = %s LIMIT 1"  # noqa: S608
IS_WAITING = "SELECT 1 FROM emails_receiverpace WHERE release_at IS NOT NULL LIMIT 1"


@dataclass(frozen=True)
class _Row:
    """A locked row. now: the time of the database."""

    id: int
    key: PairKey
    pair: Pair
    now: float


async def exchange(reports: Sequence[PairReport]) -> list[PairGrant]:
    """Give reports of this process to the others, and return what it may do. Raises LeaseLost."""
    grants: list[PairGrant] = await run_in_database_thread(exchange_reports, reports)
    return grants


@transaction.atomic
def exchange_reports(reports: Sequence[PairReport]) -> list[PairGrant]:
    """Record reports of this process, and return what it may do at each pair until its next report."""
    keys = _columns([report.key for report in reports])
    rows = _lock(LOCK, keys)
    if len(rows) < len(reports):
        run(CREATE, keys)
        rows = _lock(LOCK, keys)
    by_key = {report.key: report for report in reports}
    grants, saved = [], []
    for row in rows:
        report = by_key[row.key]
        pair, grant = row.pair.exchange(report, process=_process(), number=row.id, now=row.now)
        grants.append(grant)
        last = report.signals[-1].reply if report.signals else ""
        counts = report.accepted, len(report.signals), last, pair.volume.began_on
        saved.append((row.id, *_texts(pair), *counts))
    run(SAVE, [list(column) for column in zip(*saved, strict=True)])
    return grants


@dataclass(frozen=True)
class PairWait:
    """What entries wait for that wait for a pair.

    receiver: its key; None without a pair.
    per_minute: the messages that leave now; None without a rate.
    number: the messages of the day of a new address, if it has sent them.
    """

    receiver: str | None = None
    per_minute: float | None = None
    number: int | None = None


def read_wait(number: int) -> PairWait:
    """Return what entries wait for that wait for a pair."""
    row = ReceiverPace.objects.annotate(clock=Now()).filter(id=number).first()
    if row is None:
        return PairWait()
    now, limits = row.clock.timestamp(), limits_of(row.key)
    pair = row.pair.at(now)
    volume = pair.volume.at(day_of(now), limits)
    used_up = volume.number(limits) if volume.left(limits) == 0 and not pair.is_closed(now) else None
    return PairWait(row.receiver, pair.leaving_rate(now, limits), used_up)


def begin_release(numbers: Iterable[int]) -> None:
    """Let entries of pairs be released from now on. Called after they were stored, in the same transaction."""
    run(BEGIN_RELEASE, [sorted(set(numbers))])


def release_due() -> bool:
    """Make entries ready that may leave now; return whether others wait for a pace that may change soon."""
    # One statement if nothing waits, as nearly always.
    if run(IS_WAITING):
        _release_pairs()
        return bool(run(IS_WAITING))
    return False


@transaction.atomic
def _release_pairs() -> None:
    released: list[str] = []
    saved = []
    for row in _lock(LOCK_DUE, []):
        limits, pair = limits_of(row.key), row.pair.at(row.now)
        if not is_direct():
            # The transport that learnt this pace is gone.
            count, is_own = MOST_AT_ONCE, True
        else:
            count, is_own = _available(row, pair, limits)
        workspaces = _release(row.id, count)
        if is_own:
            pair = pair.release(len(workspaces), row.now, limits, is_waiting=len(workspaces) == count)
        is_waiting = bool(run(HAS_WAITING, [row.id]))
        saved.append((row.id, json.dumps(pair.pace.to_json()), RELEASE_EVERY_SECONDS if is_waiting else None))
        released += workspaces
    if saved:
        run(SAVE_RELEASE, [list(column) for column in zip(*saved, strict=True)])
    if released:
        counters.add(queue_stats.due_changes(released))
        transaction.on_commit(lambda: wakeup.notify_soon("emails"))


def _available(row: _Row, pair: Pair, limits: PaceLimits) -> tuple[int, bool]:
    """Return how many entries may leave that wait for a pair, and whether by it: by others if nothing leaves by it."""
    is_closed = pair.is_closed(row.now)
    if not is_closed and pair.volume.at(day_of(row.now), limits).left(limits) != 0:
        return pair.available(row.now, limits), True
    others = [PairKey(source, row.key.receiver) for source in other_sources(row.key.source)]
    known = _lock(READ, _columns(others)) if others else []
    # One that has sent nothing to this receiver begins with what it may have at first.
    count = len(others) - len(known)
    if not count and all(other.pair.former_rate is not None for other in known):
        # Email leaves by listed addresses if there is no other one.
        return replace(pair, former_rate=None).available(row.now, limits), True
    for other in known:
        present = other.pair.at(row.now)
        ask = present.available_to_others if is_closed else present.available
        count += ask(row.now, limits_of(other.key))
    return min(count, MOST_AT_ONCE), False


def is_direct() -> bool:
    """Return whether any transport delivers to the hosts of receivers itself."""
    if settings.TRANSPORTS.is_named:
        return any(spec.kind == "direct" for spec in settings.TRANSPORTS.transports.values())
    return bool(settings.DELIVERY_TRANSPORT == "direct")


def _release(number: int, count: int) -> list[str]:
    """Make up to count entries of a pair ready, and return the workspace of each."""
    released: list[str] = []
    after = UUID(bytes=os.urandom(16))
    while len(released) < count:
        rows = run_replanned(RELEASE, {"pair": number, "count": count - len(released), "after": after})
        if not rows and after == FIRST:
            break
        # A workspace with few entries leaves its share to the others.
        released += [from_uuid(workspace, prefix="ws_") for (workspace,) in rows]
        after = FIRST
    return released


def _lock(sql: str, values: Sequence[Any]) -> list[_Row]:
    rows = ReceiverPace.objects.raw(sql, values)
    return [_Row(row.id, row.key, row.pair, row.now) for row in rows]  # type: ignore[attr-defined]


def _columns(keys: Sequence[PairKey]) -> list[list[str]]:
    return [[key.source for key in keys], [key.receiver for key in keys]]


def _texts(pair: Pair) -> tuple[str, str, str | None]:
    reserved = json.dumps(pair.reserved_json) if pair.reserved_json else None
    return json.dumps(pair.pace.to_json()), json.dumps(pair.leases_json), reserved


def limits_of(key: PairKey) -> PaceLimits:
    """Return the limits of a pair: those of the table of receivers, and the first day of a new address."""
    return limits_at(settings.RECEIVERS.receiver_of_key(key.receiver), since=first_day(key.source))


def _process() -> str:
    """Return the name of this process, distinct from those of other machines."""
    return f"{socket.gethostname()}:{os.getpid()}"
