"""Publishing: reads the feed of events from a cursor and makes a delivery for each subscribed endpoint.

Deliveries are made in the order of the feed, after the events are committed (docs/decisions/0034). One statement
inserts any number of event bodies, deliveries and queue entries. An event that is published twice has one delivery
for each endpoint.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from django.db import transaction

from core.lib.ids import new_id, to_uuid
from core.lib.sql import run, run_prepared
from core.lib.worker import wakeup
from core.lib.worker.failpoints import failpoint
from core.lib.worker.stages import Stage
from events.feed import Entry, load_entries, read_entries
from events.kinds import WEBHOOK_KINDS, EventKind
from events.models import Event, FeedEntry
from events.rendering import RenderedEvent
from webhooks.models import FeedCursor, Webhook
from webhooks.sending.retries import WINDOW

# Entries that are read in one transaction.
BATCH = 1000
# Events with received emails at a time, each up to 1 MiB.
LARGE_BATCH = 8
HAS_WORK = """
SELECT 1 FROM events_feedhead h LEFT JOIN webhooks_feedcursor c ON c.id = 1 WHERE h.position > coalesce(c.position, 0)
"""
# Entries are visible before the head: both are written by one transaction.
LOCK = """
SELECT c.position, h.position FROM webhooks_feedcursor c, events_feedhead h
 WHERE c.position < h.position FOR UPDATE OF c SKIP LOCKED
"""
INSERT = f"""
WITH event AS (
    INSERT INTO webhooks_webhookevent (id, workspace_id, body, created_at)
    SELECT id, workspace_id, body::text, created_at
      FROM json_to_recordset(%(events)s) AS e (id uuid, workspace_id uuid, body json, created_at timestamptz)
        ON CONFLICT (id) DO NOTHING
), delivery AS (
    INSERT INTO webhooks_webhookdelivery (id, workspace_id, webhook_id, event_id, kind, is_test, status, attempt_count,
                                          attempts, error, created_at)
    SELECT id, workspace_id, webhook_id, event_id, kind, is_test, 'pending', 0, '[]', '', created_at
      FROM json_to_recordset(%(deliveries)s) AS d (id uuid, workspace_id uuid, webhook_id uuid, event_id uuid,
           kind text, is_test boolean, created_at timestamptz)
        ON CONFLICT (event_id, webhook_id) DO NOTHING
    RETURNING id, webhook_id, is_test
)
INSERT INTO webhooks_pending (delivery_id, webhook_id, stage, due_at, expires_at, fence, attempts, by_hand)
SELECT id, webhook_id, {Stage.READY}, now(), now() + %(window)s, 0, 0, is_test FROM delivery
"""  # noqa: S608 - a constant
# The age of the oldest entry of the feed that has no deliveries yet.
DELAY = """
SELECT extract(epoch FROM now() - recorded_at)::float FROM events_feedentry
 WHERE position > coalesce((SELECT position FROM webhooks_feedcursor), 0) ORDER BY position LIMIT 1
"""


def publish_events() -> None:
    """Make deliveries of all new events; return at once while another process does so."""
    while run(HAS_WORK) and _publish_batch():
        pass


def delay_seconds() -> float:
    """Return the age of the oldest event in the feed that is not published, 0 without one."""
    rows = run(DELAY)
    return float(rows[0][0]) if rows else 0.0


@transaction.atomic
def _publish_batch() -> bool:
    """Publish the events of up to BATCH entries; return False if another process holds the cursor."""
    FeedCursor.objects.get_or_create(id=1)
    locked = run(LOCK)
    if not locked:
        return False
    ((position, head),) = locked
    until = head if head - position <= BATCH else _end_of_batch(position) or head
    _publish(position, until)
    FeedCursor.objects.filter(id=1).update(position=until)
    failpoint("webhooks.before_publish_commit")
    return True


def _end_of_batch(position: int) -> int | None:
    """Return the position of the last of BATCH entries, since positions have gaps (events.sequencer.lift_positions)."""
    later = FeedEntry.objects.filter(position__gt=position).order_by("position")
    return later.values_list("position", flat=True)[BATCH - 1 : BATCH].first()


def _publish(after: int, until: int) -> None:
    entries = FeedEntry.objects.filter(position__gt=after, position__lte=until)
    subscribers = _subscribers(set(entries.order_by().values_list("workspace_id", flat=True).distinct()))
    if not subscribers:
        return
    rows = list(read_entries(entries.filter(workspace_id__in=subscribers)))
    large = _large_events([number for _, number in rows])
    for batch in _batches(rows, large):
        events = load_entries(batch, kinds=WEBHOOK_KINDS, is_whole=True)
        insert_deliveries(
            [
                (positioned.event, webhook.id)
                for positioned in events
                for webhook in subscribers[positioned.event.workspace_id]
                if webhook.gets(positioned.event)
            ]
        )


def _large_events(numbers: Sequence[int]) -> set[int]:
    return set(Event.objects.filter(number__in=numbers, kind=EventKind.RECEIVED).values_list("number", flat=True))


def _batches(entries: Sequence[Entry], large: Collection[int]) -> Iterator[list[Entry]]:
    """Yield entries in order, with at most LARGE_BATCH large events in a batch."""
    batch: list[Entry] = []
    count = 0
    for entry in entries:
        batch.append(entry)
        count += entry[1] in large
        if count >= LARGE_BATCH:
            yield batch
            batch, count = [], 0
    if batch:
        yield batch


def insert_deliveries(pairs: Sequence[tuple[RenderedEvent, str]]) -> list[str]:
    """Insert a delivery for each pair of event and endpoint id, ready at once; return the delivery ids."""
    if not pairs:
        return []
    ids = [new_id("whd_") for _ in pairs]
    events = {event.id: event for event, _ in pairs}
    values: dict[str, Any] = {
        "events": f"[{','.join(_event_row(event) for event in events.values())}]",
        "deliveries": json.dumps([_delivery_row(id_, *pair) for id_, pair in zip(ids, pairs, strict=True)]),
        "window": WINDOW,
    }
    run_prepared(INSERT, values)
    transaction.on_commit(lambda: wakeup.notify("webhooks"))
    return ids


def _subscribers(workspace_ids: Collection[str]) -> dict[str, list[Webhook]]:
    """Return the active endpoints by workspace."""
    subscribers: dict[str, list[Webhook]] = {}
    for webhook in Webhook.objects.filter(workspace__in=workspace_ids, active=True).order_by():
        subscribers.setdefault(webhook.workspace_id, []).append(webhook)
    return subscribers


def _event_row(event: RenderedEvent) -> str:
    """Return the values of an event as JSON.

    The body is a part of it, since PostgreSQL keeps the text of the type json (docs/decisions/0360).
    """
    columns = {
        "id": str(to_uuid(event.id, prefix="evt_")),
        "workspace_id": str(to_uuid(event.workspace_id, prefix="ws_")),
        "created_at": event.created_at.isoformat(),
    }
    body = json.dumps(event.body(), ensure_ascii=False, separators=(",", ":"))
    return f'{json.dumps(columns)[:-1]},"body":{body}}}'


def _delivery_row(delivery_id: str, event: RenderedEvent, webhook_id: str) -> dict[str, Any]:
    return {
        "id": str(to_uuid(delivery_id, prefix="whd_")),
        "workspace_id": str(to_uuid(event.workspace_id, prefix="ws_")),
        "webhook_id": str(to_uuid(webhook_id, prefix="wh_")),
        "event_id": str(to_uuid(event.id, prefix="evt_")),
        "kind": event.kind,
        "is_test": event.is_test,
        "created_at": event.created_at.isoformat(),
    }
