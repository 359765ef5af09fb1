"""`GET /v1/queue/stats`: every recipient of the workspace is counted once."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.utils import timezone

from core.counters import counters
from emails import queue_stats
from emails.models import QueueEntry
from emails.queue_stats import QueueStats, read_queue_stats
from emails.sending.scheduling import promote_due
from tests.conftest import later
from tests.emails.builders import BOUNCED, FAILED, LATER, OK, SENT, change_workspace, claim_entries, deliver, send
from tests.plans import plan_of, prefer_indexes
from tests.rows import each

pytestmark = pytest.mark.django_db

THREE = {"to": ["a@example.com", "b@example.com"], "bcc": ["c@example.com"]}
NOTHING = {"waiting": 0, "active": 0, "delayed": 0, "completed": 0, "failed": 0, "paused": 0}


def get_stats(api):
    """Return the statistics that are not zero."""
    queue_stats.stats_cache.clear()
    response = api.get("/queue/stats")
    assert response.status_code == 200
    assert response.json().keys() == NOTHING.keys()
    return {name: count for name, count in response.json().items() if count}


def test_an_empty_queue_is_all_zeros(api):
    assert api.get("/queue/stats").json() == NOTHING


def test_recipients_are_counted_not_emails(api):
    send(api, **THREE)
    assert get_stats(api) == {"waiting": 3}


def test_claimed_recipients_are_active(api):
    send(api, **THREE)
    claim_entries(2)
    assert get_stats(api) == {"waiting": 1, "active": 2}


def test_accepted_recipients_are_completed_and_the_rest_failed(api):
    for _ in range(2):
        send(api, **THREE)
    deliver(OK, SENT, BOUNCED, FAILED, LATER)
    assert get_stats(api) == {"waiting": 1, "delayed": 1, "completed": 2, "failed": 2}


def test_a_retry_is_delayed_until_it_is_due_promoted_or_not(api):
    send(api)
    deliver(LATER)
    assert get_stats(api) == {"delayed": 1}
    QueueEntry.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    assert get_stats(api) == {"waiting": 1}
    promote_due()
    assert get_stats(api) == {"waiting": 1}


def test_a_scheduled_email_is_delayed_and_all_its_recipients_become_due_together(api):
    send(api, **THREE, scheduledFor=later())
    assert get_stats(api) == {"delayed": 3}
    past = timezone.now() - timedelta(seconds=1)
    QueueEntry.objects.update(since=past)
    QueueEntry.objects.filter(recipient__position=0).update(due_at=past)
    assert get_stats(api) == {"waiting": 3}
    promote_due()
    assert get_stats(api) == {"waiting": 3}


def test_rescheduling_applies_to_all_recipients(api):
    email_id = send(api, **THREE, scheduledFor=later())
    assert api.patch(f"/emails/{email_id}", {"scheduledFor": later(hours=2)}).status_code == 200
    assert len(set(QueueEntry.objects.values_list("since"))) == 1
    assert get_stats(api) == {"delayed": 3}
    assert api.patch(f"/emails/{email_id}", {"scheduledFor": None}).status_code == 200
    assert get_stats(api) == {"waiting": 3}


def test_cancelled_recipients_are_not_counted(api):
    email_id = send(api, **THREE, scheduledFor=later())
    for _ in range(2):
        assert api.delete(f"/emails/{email_id}").status_code == 200
    assert get_stats(api) == {}


def test_recipients_of_a_lost_worker_are_waiting(api):
    send(api)
    claim_entries()
    QueueEntry.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    promote_due()
    assert get_stats(api) == {"waiting": 1}


def test_in_a_suspended_workspace_waiting_and_delayed_recipients_are_paused(api, alice):
    send(api, **THREE)
    send(api, **THREE, scheduledFor=later())
    claim_entries(1)
    change_workspace(alice.workspace, suspended_at=timezone.now())
    assert get_stats(api) == {"paused": 5, "active": 1}
    change_workspace(alice.workspace, suspended_at=None)
    assert get_stats(api) == {"waiting": 2, "active": 1, "delayed": 3}


def test_another_workspaces_queue_is_not_counted(api, bobs_api):
    send(api, **THREE)
    assert get_stats(bobs_api) == {}


@each("folds", [0, 1, 3])
def test_folding_does_not_change_the_stats(api, folds):
    for _ in range(3):
        send(api, **THREE)
        deliver(OK, BOUNCED)
        for _ in range(folds):
            counters.fold()
    assert get_stats(api) == {"waiting": 3, "completed": 3, "failed": 3}


def test_stats_are_cached_for_at_most_a_second(api, alice, monkeypatch):
    assert read_queue_stats(alice.workspace) == QueueStats(**NOTHING)
    send(api)
    assert read_queue_stats(alice.workspace).waiting == 0
    monkeypatch.setattr(queue_stats.stats_cache, "ttl_seconds", 0.0)
    assert read_queue_stats(alice.workspace).waiting == 1


# Queue entries of recipients that do not exist.
BACKLOG = """
INSERT INTO emails_pending (recipient_id, workspace_id, domain, stage, due_at, since, fence, attempts)
SELECT gen_random_uuid(), gen_random_uuid(), 'example.com', n % 4, now(), now(), 0, 0 FROM generate_series(1, 4000) n;
ANALYZE emails_pending
"""


def test_the_backlog_is_not_counted_row_by_row(api, alice):
    """Waiting entries of any workspace are never read: the counts scan small ranges of their indexes."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(BACKLOG)
        prefer_indexes("enable_bitmapscan")
        plan = plan_of(queue_stats.STATS, {"workspace": UUID(int=1), "all_time": counters.ALL_TIME})
        transaction.set_rollback(True)
    for index, condition in (
        ("leased", ""),
        ("waiting", " AND (due_at <= now())"),
        ("scheduled", " AND (since <= now())"),
    ):
        assert f"pending_{index} on emails_pending" in plan
        assert f"{condition})\n" in plan
    assert not [other for other in ("pending_ready", "pending_due", "Filter") if other in plan]
