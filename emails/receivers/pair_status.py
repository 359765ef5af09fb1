"""The state of the pace of each pair of a source and a receiver, and what waits for it (docs/decisions/0363)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.db.models import Case, F, IntegerField, QuerySet, Value, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now

from core.delivery.pacing.pace import FORGET_SECONDS, PLATEAU_SECONDS, UNUSED_SECONDS
from core.delivery.pacing.volumes import day_of
from core.lib.ids import to_uuid
from core.lib.sql import run
from core.lib.worker.stages import Stage
from core.workspaces.models import Workspace
from emails.models import ReceiverPace
from emails.pacing.paces import limits_of
from emails.receivers.states import PairState

# Key of the metrics of all receivers that are not in the table.
OTHER = "other"

# SQL with the state of a row, as Pace.forgotten and Pair.at forget a rate. The parameter has the receivers of the table
# that have a rate of their own.
STATE = f"""
CASE WHEN emails_receiverpace.stopped_at IS NOT NULL THEN '{PairState.STOPPED}'
     WHEN (emails_receiverpace.pace ->> 'suspended_until')::float > extract(epoch FROM now())
         THEN '{PairState.SUSPENDED}'
     WHEN emails_receiverpace.pinned IS NOT NULL OR emails_receiverpace.receiver = ANY(%s)
         OR (emails_receiverpace.updated_at > now() - interval '{FORGET_SECONDS} s'
             AND extract(epoch FROM now()) < greatest(
                 (emails_receiverpace.pace ->> 'slowed_at')::float + {PLATEAU_SECONDS},
                 CASE WHEN emails_receiverpace.pace ->> 'slowed_at' IS NOT NULL
                      THEN (emails_receiverpace.pace ->> 'waited_at')::float + {UNUSED_SECONDS} END))
         THEN '{PairState.LIMITED}'
     ELSE '{PairState.LEARNING}' END
"""
# By the index of paced entries.
WAITING = f"""
SELECT pair, count(*) FROM emails_pending WHERE stage = {Stage.PACED} AND pair = ANY(%s) GROUP BY pair
"""  # noqa: S608 - constants
# One step of the index for each pair that entries wait for, and its entries of one workspace.
WAITING_OF_WORKSPACE = f"""
SELECT p.receiver, count(*), min(entry.since)
  FROM emails_receiverpace p JOIN emails_pending entry
       ON entry.stage = {Stage.PACED} AND entry.pair = p.id AND entry.workspace_id = %s
 WHERE p.release_at IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %s
"""  # noqa: S608 - constants
# A row counts for its receiver, or for all that are not in the table.
TOTALS = f"""
SELECT CASE WHEN receiver = ANY(%s) THEN receiver ELSE '{OTHER}' END, {STATE}, count(*),
       sum(accepted) FILTER (WHERE day = (now() AT TIME ZONE 'UTC')::date),
       sum(slowed) FILTER (WHERE day = (now() AT TIME ZONE 'UTC')::date),
       sum((SELECT sum((lease.value ->> 0)::int) FROM jsonb_each(leases) lease
             WHERE (lease.value ->> 2)::float > extract(epoch FROM now()))),
       sum((SELECT count(*) FROM emails_pending WHERE stage = {Stage.PACED} AND pair = emails_receiverpace.id))
           FILTER (WHERE release_at IS NOT NULL),
       count(*) FILTER (WHERE began_on > (now() AT TIME ZONE 'UTC')::date - %s::int)
  FROM emails_receiverpace GROUP BY 1, 2
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class PairStatus:
    """The pace of a source at a receiver.

    source: the addresses that are connected from; empty for those that the system chooses.
    receiver, name: the key of the receiver, and its name for people.
    since: when the state began; None if it is not known.
    until: the end of a suspension that the receiver caused.
    connections, allowed: that are open, and that may be.
    per_minute: the messages that leave for it now; 0 while suspended, None without a limit.
    pinned: the rate that the staff has set.
    waiting: the number of recipients.
    accepted, slowed: messages, and replies that asked for less, since midnight UTC.
    day, number: the day of a new address at the receiver, from 1, and its messages of this day; None for others.
    is_listed: whether it takes nothing new because of a block list.
    reply, replied_at: the last of these replies; empty and None without one.
    """

    id: int
    source: str
    receiver: str
    name: str
    state: PairState
    since: datetime | None
    until: datetime | None
    connections: int
    allowed: int
    per_minute: float | None
    pinned: float | None
    waiting: int
    accepted: int
    slowed: int
    day: int | None
    number: int | None
    is_listed: bool
    reply: str
    replied_at: datetime | None

    @property
    def is_stopped(self) -> bool:
        """Return whether nothing leaves."""
        return self.state in (PairState.STOPPED, PairState.SUSPENDED)


@dataclass(frozen=True)
class SlowReceiver:
    """A receiver for whose pace recipients of a workspace wait. since: when the first of them was due."""

    name: str
    waiting: int
    since: datetime


@dataclass(frozen=True)
class ReceiverTotals:
    """The pairs of a receiver in one state together; receiver is OTHER for all that are not in the table.

    accepted, signals: since midnight UTC.
    new: pairs of addresses in their first days, as many as those of most receivers.
    """

    receiver: str
    state: str
    pairs: int
    accepted: int
    signals: int
    connections: int
    waiting: int
    new: int


def find_pairs(*, receiver: str = "", state: str = "") -> QuerySet[ReceiverPace]:
    """Return the rows of pairs, those that nothing leaves for first, then by the messages accepted today.

    receiver: a part of its key, or of a name in the table.
    """
    pairs = ReceiverPace.objects.annotate(state=RawSQL(STATE, [_limited_receivers()]), clock=Now())  # noqa: S611 - constant
    if text := receiver.strip().lower().replace("\0", ""):
        named = [one.key for one in settings.RECEIVERS.receivers if text in one.name.lower()]
        pairs = pairs.filter(receiver__contains=text) | pairs.filter(receiver__in=named)
    if state:
        pairs = pairs.filter(state=state)
    places = [When(state=one, then=Value(place)) for place, one in enumerate(PairState)]
    return pairs.order_by(Case(*places, output_field=IntegerField()), F("day").desc(nulls_last=True), "-accepted", "id")


def read_pair_statuses(rows: Sequence[ReceiverPace]) -> list[PairStatus]:
    """Return the statuses of rows of find_pairs."""
    waiting: dict[int, int] = dict(run(WAITING, [[row.id for row in rows]])) if rows else {}
    return [_status(row, waiting.get(row.id, 0)) for row in rows]


def read_slow_receivers(workspace: Workspace, *, limit: int = 20) -> list[SlowReceiver]:
    """Return the receivers whose pace recipients of a workspace wait for now, by their number."""
    rows = run(WAITING_OF_WORKSPACE, [to_uuid(workspace.id, prefix="ws_"), limit])
    return [SlowReceiver(settings.RECEIVERS.receiver_of_key(key).name, count, since) for key, count, since in rows]


def read_totals() -> list[ReceiverTotals]:
    """Return the sums of all pairs by receiver and state."""
    known = [one.key for one in settings.RECEIVERS.receivers]
    rows = run(TOTALS, [known, _limited_receivers(), len(settings.RECEIVERS.default.warm_up)])
    return [
        ReceiverTotals(receiver, state, pairs, *(count or 0 for count in sums))
        for receiver, state, pairs, *sums in rows
    ]


def _limited_receivers() -> list[str]:
    return [one.key for one in settings.RECEIVERS.receivers if one.per_minute]


def _status(row: ReceiverPace, waiting: int) -> PairStatus:
    now = row.clock.timestamp()  # type: ignore[attr-defined]
    state, limits = PairState(row.state), limits_of(row.key)  # type: ignore[attr-defined]
    pair = row.pair.at(now)
    pace = pair.pace
    today = day_of(now)
    volume = pair.volume.at(today, limits)
    number = volume.number(limits)
    day = None if number is None or volume.began_on is None else (today - volume.began_on).days + 1
    is_today = row.day == today
    slowed_at = _time(pace.slowed_at)
    since = {PairState.STOPPED: row.stopped_at, PairState.SUSPENDED: row.signal_at, PairState.LIMITED: slowed_at}
    return PairStatus(
        row.id,
        row.source,
        row.receiver,
        settings.RECEIVERS.receiver_of_key(row.receiver).name,
        state,
        since.get(state),
        _time(pace.suspended_until) if state is PairState.SUSPENDED else None,
        sum(lease.connections for lease in pair.leases.values()),
        min(pace.connections, limits.connections),
        pair.leaving_rate(now, limits),
        row.pinned,
        waiting,
        row.accepted if is_today else 0,
        row.slowed if is_today else 0,
        day,
        number,
        row.former_rate is not None,
        row.signal,
        row.signal_at,
    )


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
