"""Sends of streams: the metric `silent` of alerts (docs/decisions/0385).

Unlike all other values, the times of emails are in no counter of a stream, so they are read from the emails, within
limits that do not depend on their number.
"""

import logging
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.db import DatabaseError
from django.db.models import F, Q
from django.db.models.functions import Now

from alerts.models import LEARNED_FIELDS, Alert, SendPattern
from alerts.silence import SLOT, WEEK, WEEKS
from alerts.watched_value import Amount, WatchedValue, WatchedValues
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import database_time, local_settings, run
from streams.models import MAIN

LEARNED_EVERY = timedelta(days=1)
# Patterns that one check learns.
LEARNED_AT_ONCE = 10
# Emails of a workspace, or of a stream, that are looked at for the last one of `main`, or for one that is no test.
LATEST = 1_000
# The same, for each slot of a pattern: enough for MINIMUM_EMAILS in four slots.
IN_A_SLOT = 25
# `main` has no index: its emails are looked for among those of the workspace. If LATEST have none, the oldest of them
# stands for it.
LAST_SENDS = f"""
SELECT workspace_id, slug, extract(epoch FROM now())::float8, extract(epoch FROM CASE WHEN slug IN ('', '{MAIN}')
       THEN coalesce(
            (SELECT created_at FROM (SELECT created_at, stream, is_test FROM emails_email e
                WHERE e.workspace_id = watched.workspace_id ORDER BY created_at DESC, id DESC LIMIT {LATEST}) latest
              WHERE NOT is_test AND (slug = '' OR stream = '{MAIN}') ORDER BY created_at DESC LIMIT 1),
            (SELECT created_at FROM emails_email e
              WHERE e.workspace_id = watched.workspace_id
              ORDER BY created_at DESC, id DESC OFFSET {LATEST - 1} LIMIT 1))
       ELSE coalesce(
            (SELECT created_at FROM (SELECT created_at, is_test FROM emails_email e
                WHERE e.workspace_id = watched.workspace_id AND e.stream = watched.slug AND e.stream <> '{MAIN}'
                ORDER BY created_at DESC, id DESC LIMIT {LATEST}) latest
              WHERE NOT is_test ORDER BY created_at DESC LIMIT 1),
            (SELECT created_at FROM emails_email e
              WHERE e.workspace_id = watched.workspace_id AND e.stream = watched.slug AND e.stream <> '{MAIN}'
              ORDER BY created_at DESC, id DESC OFFSET {LATEST - 1} LIMIT 1)) END)::float8
  FROM (SELECT DISTINCT workspace_id, slug
          FROM unnest(%(workspaces)s::uuid[], %(slugs)s::text[]) AS w (workspace_id, slug)) watched
 WHERE NOT EXISTS (SELECT FROM streams_stream s WHERE s.workspace_id = watched.workspace_id AND s.slug = watched.slug
                      AND (s.archived_at IS NOT NULL OR s.paused_at IS NOT NULL))
"""  # noqa: S608 - constants
READ_SENDS = f"""
SELECT extract(epoch FROM first)::bigint, emails
  FROM generate_series(%(start)s::bigint, %(end)s::bigint - {SLOT}, {SLOT}) AS slot CROSS JOIN LATERAL (
    SELECT min(created_at) AS first, count(*) AS emails FROM (
        SELECT created_at, stream, is_test FROM emails_email
         WHERE workspace_id = %(workspace)s AND created_at >= to_timestamp(slot)
           AND created_at < to_timestamp(slot + {SLOT}) {{condition}}
         ORDER BY created_at LIMIT {IN_A_SLOT}) e
     WHERE NOT is_test AND (stream = '{MAIN}' OR %(slug)s <> '{MAIN}')) found
 WHERE emails > 0 ORDER BY 1
"""  # noqa: S608 - constants
OF_STREAM = f"AND stream = %(slug)s AND stream <> '{MAIN}'"
log = logging.getLogger("postrider.alerts")


def read_silences(alerts: Collection[Alert]) -> WatchedValues:
    """Return the usual gaps since the last email of streams, in two queries; None without a rhythm.

    A stream that is paused or archived is not silent, and neither is a workspace that is suspended.
    """
    patterns = SendPattern.objects.defer("sends", "emails").in_bulk([alert.id for alert in alerts])
    values = {
        "workspaces": [to_uuid(alert.workspace_id, prefix="ws_") for alert in alerts],
        "slugs": [alert.stream for alert in alerts],
    }
    with local_settings({"jit": "off"}):
        last = {(from_uuid(id_, prefix="ws_"), slug): times for id_, slug, *times in run(LAST_SENDS, values)}
    return {
        alert.id: _silence(alert, patterns.get(alert.id), last.get((alert.workspace_id, alert.stream)))
        for alert in alerts
    }


def _silence(alert: Alert, pattern: SendPattern | None, times: Any) -> WatchedValue | None:
    """Return the value of an alert. times: now and the time of the last email, None if there is none; None if paused.

    The last email may be older than the retention of emails.
    """
    rhythm = pattern.rhythm if pattern else None
    if pattern is None or rhythm is None or times is None or alert.workspace.suspended_at:
        return None
    now, last = times
    # An email may have been accepted after this transaction began.
    last = min(last or pattern.last_send, now)
    return Amount.of(rhythm.gaps(last, now))


def learn_patterns() -> None:
    """Read the sends of alerts whose patterns are older than LEARNED_EVERY, and learn their rhythms."""
    is_due = Q(pattern__learned_at=None) | Q(pattern__learned_at__lt=Now() - LEARNED_EVERY)
    due = Alert.objects.watched().filter(is_due, metric=Alert.WatchedMetric.SILENT)
    for alert in due.order_by(F("pattern__learned_at").asc(nulls_first=True), "id")[:LEARNED_AT_ONCE]:
        try:
            _learn(alert)
        except DatabaseError:
            # A statement timeout: the others continue, and this one is tried again on the next day.
            log.exception("the sends of a stream could not be read", extra={"data": {"alert": alert.id}})


def _learn(alert: Alert) -> None:
    pattern, _ = SendPattern.objects.get_or_create(alert=alert)
    # Another check may learn it at the same time.
    unchanged = SendPattern.objects.filter(alert=alert, learned_at=pattern.learned_at)
    if unchanged.update(learned_at=Now()):
        pattern.learn(*_read_sends(alert, after=pattern.read_until))
        pattern.save(update_fields=LEARNED_FIELDS)


def _read_sends(alert: Alert, *, after: int) -> tuple[list[tuple[int, int]], int]:
    """Return the time and the number of the emails in each slot, and the time until which they were read.

    after: the time until which earlier ones were read; at most WEEKS are read.
    """
    # An email has the time at which its transaction began.
    end = int(database_time().timestamp()) // SLOT * SLOT - SLOT
    values = {
        "workspace": to_uuid(alert.workspace_id, prefix="ws_"),
        "slug": alert.stream,
        "start": max(after, end - WEEKS * WEEK),
        "end": end,
    }
    sql = READ_SENDS.format(condition="" if alert.stream in {"", MAIN} else OF_STREAM)
    with local_settings({"jit": "off"}):
        return run(sql, values), end
