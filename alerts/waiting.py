"""Emails that wait: the metric `waiting` of alerts, counted in the queue (docs/decisions/0384)."""

from collections import defaultdict
from collections.abc import Collection
from decimal import Decimal

from django.conf import settings

from alerts.models import Alert
from alerts.watched_value import Amount, WatchedValues
from core.delivery.transports.simulator import OLD_DOMAIN
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import local_settings, run
from core.lib.worker.stages import Stage
from streams.models import LAST_RANK

# Emails that wait for longer are counted.
WAITING_MINUTES = 10
# The entries of a workspace that are looked at in each stage, and at each priority or receiver.
MOST_ENTRIES = 2_000
# An entry's `since` is the time at which it was first due: the scheduled time of a scheduled email, whose entry stays
# in its stage while its batch is paused. Entries of paused streams are in the stage HELD, which is not read. Each part
# reads an index of emails_pending in its order, the oldest entries first; OFFSET 0 keeps the planner from scanning the
# tables of emails and recipients, because it expects as many entries as the limits permit. With an equation of the
# workspace, it would read pending_timed, the waiting entries of all workspaces, in the same order.
COUNT_WAITING = f"""
WITH watched AS (
    SELECT DISTINCT w AS workspace_id FROM unnest(%(workspaces)s::uuid[]) AS w
), pair AS (
    SELECT id FROM emails_receiverpace pace
     WHERE EXISTS (SELECT FROM emails_pending WHERE stage = {Stage.PACED} AND pair = pace.id)
), entry AS (
    SELECT p.* FROM watched w CROSS JOIN generate_series(0, {LAST_RANK}) AS one (rank) CROSS JOIN LATERAL (
        SELECT * FROM emails_pending
         WHERE stage = {Stage.READY} AND workspace_id = w.workspace_id AND rank = one.rank
         ORDER BY due_at LIMIT {MOST_ENTRIES}) p
    UNION ALL
    SELECT p.* FROM watched w CROSS JOIN LATERAL (
        SELECT * FROM emails_pending
         WHERE stage = {Stage.WAITING} AND (workspace_id, due_at) >= (w.workspace_id, '-infinity'::timestamptz)
           AND (workspace_id, due_at) <= (w.workspace_id, 'infinity'::timestamptz)
         ORDER BY workspace_id, due_at LIMIT {MOST_ENTRIES}) p
    UNION ALL
    SELECT p.* FROM watched w CROSS JOIN LATERAL (
        SELECT * FROM emails_pending
         WHERE stage = {Stage.LEASED} AND workspace_id = w.workspace_id LIMIT {MOST_ENTRIES}) p
    UNION ALL
    SELECT p.* FROM watched w CROSS JOIN LATERAL (
        SELECT * FROM emails_pending
         WHERE stage = {Stage.SCHEDULED} AND workspace_id = w.workspace_id
           AND since <= now() - make_interval(mins => %(minutes)s)
         ORDER BY since LIMIT {MOST_ENTRIES}) p
    UNION ALL
    SELECT p.* FROM watched w CROSS JOIN pair CROSS JOIN LATERAL (
        SELECT * FROM emails_pending
         WHERE stage = {Stage.PACED} AND pair = pair.id AND workspace_id = w.workspace_id LIMIT {MOST_ENTRIES}) p
), late AS MATERIALIZED (
    SELECT workspace_id, recipient_id, stage FROM entry
     WHERE since <= now() - make_interval(mins => %(minutes)s) AND domain <> ALL(%(simulated)s)
)
SELECT late.workspace_id, e.stream, count(DISTINCT e.id) FROM late
 CROSS JOIN LATERAL (SELECT email_id FROM emails_recipient WHERE id = late.recipient_id OFFSET 0) r
 CROSS JOIN LATERAL (SELECT id, stream, is_test, batch_id FROM emails_email WHERE id = r.email_id OFFSET 0) e
 WHERE NOT e.is_test
   AND (stage <> {Stage.SCHEDULED}
        OR coalesce((SELECT state FROM emails_emailbatch WHERE id = e.batch_id), '') <> 'paused')
 GROUP BY 1, 2
"""  # noqa: S608 - constants
# The oldest entries, in the order of the index, are enough: no other plan stops after them.
PLANNER = {"jit": "off", "enable_seqscan": "off", "enable_bitmapscan": "off"}


def read_waiting(alerts: Collection[Alert]) -> WatchedValues:
    """Return the emails of workspaces and streams that have waited for more than WAITING_MINUTES, in one query."""
    values = {
        "workspaces": [to_uuid(alert.workspace_id, prefix="ws_") for alert in alerts],
        "minutes": WAITING_MINUTES,
        "simulated": [settings.SIMULATOR_DOMAIN, OLD_DOMAIN],
    }
    counts: dict[tuple[str, str], int] = defaultdict(int)
    with local_settings(PLANNER):
        for workspace, stream, count in run(COUNT_WAITING, values):
            workspace_id = from_uuid(workspace, prefix="ws_")
            counts[workspace_id, stream] = count
            counts[workspace_id, ""] += count
    return {alert.id: Amount(Decimal(counts[alert.workspace_id, alert.stream])) for alert in alerts}
