"""`GET /v1/analytics/latency`: compared with the events of recipients that took random times."""

import random
import re
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from math import ceil
from typing import Any

import pytest
from django.db import connection
from django.db.models import F, Q
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analytics.latency import READ
from core.counters import counters
from core.counters.latency import BOUNDS, Latency, bucket_of, counter_name, histogram_id, read_installation
from core.delivery.bounces.replies import DeliveryOutcome
from core.lib.ids import to_uuid
from core.lib.worker.stages import Stage
from core.workspaces.key_limits import NO_LIMITS, KeyLimits
from core.workspaces.models import Workspace
from emails.accept.batches import create_batch, pause_batch, resume_batch
from emails.models import Email, QueueEntry
from emails.sending.outcomes import SendResult, record_results
from emails.sending.queue import EmailClaim
from emails.sending.scheduling import promote_due
from events.models import Event
from streams.models import Stream
from streams.services import create_stream, pause_stream, resume_stream
from tests.analytics.conftest import DAY, HOUR, NOON, get_analytics
from tests.conftest import Account, Api, field_codes, make_key
from tests.emails.builders import BOUNCED, FAILED, LATER, OK, PARKED, SENT, accept, claim_entries, fold, make_due, send
from tests.plans import plan_of
from tests.rows import each

pytestmark = pytest.mark.django_db

PATH = "/analytics/latency"
SHARES = {"within10Seconds": 10, "within60Seconds": 60, "within10Minutes": 600}
NOTHING = {"count": 0, **dict.fromkeys(("p50", "p95", "p99", *SHARES))}


def age_entries(*seconds: float) -> None:
    """Let the queued entries be due for these times, each that many seconds."""
    entries = list(QueueEntry.objects.filter(stage=Stage.READY).order_by("recipient_id"))
    for entry, age in zip(entries, seconds, strict=True):
        entry.since = timezone.now() - timedelta(seconds=age)
        entry.save(update_fields=["since"])


def record(outcome: DeliveryOutcome, claims: Iterable[EmailClaim] | None = None, *, took: float = 0.0) -> None:
    """Record an outcome of all ready entries, by attempts that took some seconds."""
    claims = claim_entries() if claims is None else claims
    record_results([SendResult(claim, outcome, began=time.monotonic() - took) for claim in claims])


def latency(api: Api, **query: Any) -> dict[str, Any]:
    return get_analytics(api, PATH, **query)


def counts(report: dict[str, Any]) -> tuple[int, int]:
    return report["firstAttempt"]["count"], report["outcome"]["count"]


def groups(api: Api, by: str) -> dict[str, tuple[int, int]]:
    return {group["id"]: counts(group) for group in latency(api, by=by)["groups"]}


def record_random_outcomes(claims: list[EmailClaim]) -> None:
    """Deliver, bounce or fail most recipients; defer the first hundred."""
    for claim in claims[:100]:
        record(LATER, [claim])
    for outcome, ended in ((OK, claims[100:200]), (BOUNCED, claims[200:280]), (FAILED, claims[280:])):
        for start in range(0, len(ended), 10):
            record(outcome, ended[start : start + 10])


def times_of_events(due: dict[str, Any]) -> dict[str, list[float]]:
    """Return the seconds until the first event of an attempt, and until the last one, of each recipient."""
    first: dict[str, float] = {}
    ended: dict[str, float] = {}
    for event in Event.objects.filter(kind__in=("deferred", "sent", "bounced", "failed")).order_by("number"):
        seconds = (event.created_at - due[str(event.recipient_id)]).total_seconds()
        first.setdefault(str(event.recipient_id), seconds)
        ended[str(event.recipient_id)] = seconds
    return {"firstAttempt": sorted(first.values()), "outcome": sorted(ended.values())}


@pytest.mark.parametrize("folds", [0, 1, 2])
def test_percentiles_and_shares_are_those_of_the_events(api: Api, folds):
    """Three hundred recipients took random times, from a hundredth of a second to two days."""
    chance = random.Random(folds)
    for number in range(30):
        send(api, to=[f"u{number}-{one}@gmail.com" for one in range(10)])
    age_entries(*(10 ** chance.uniform(-2, 5.2) for _ in range(300)))
    due = dict(QueueEntry.objects.values_list("recipient_id", "since"))
    record_random_outcomes(claim_entries())
    if folds == 1:
        fold()
    QueueEntry.objects.update(stage=Stage.READY)
    record(SENT)
    if folds == 2:
        fold()

    report = latency(api)

    for name, times in times_of_events(due).items():
        assert report[name]["count"] == len(times) == 300
        for percent in (50, 95, 99):
            exact = times[ceil(percent * len(times) / 100) - 1]
            found = bucket_of(report[name][f"p{percent}"])
            assert abs(found - min(bucket_of(exact), len(BOUNDS) - 1)) <= 1, (name, percent)
        for share, limit in SHARES.items():
            assert report[name][share] == pytest.approx(sum(one <= limit for one in times) / 300, abs=0.01)


def test_without_emails_there_is_no_percentile(api: Api):
    report = latency(api)
    assert (report["firstAttempt"], report["outcome"], report["groups"]) == (NOTHING, NOTHING, [])
    assert latency(api, by="stream")["groups"] == latency(api, by="receiver")["groups"] == []


def test_a_first_attempt_is_measured_at_its_beginning_and_an_outcome_at_its_end(api: Api):
    send(api)
    age_entries(100)
    record(OK, took=40)
    report = latency(api)
    assert (bucket_of(report["firstAttempt"]["p50"]), bucket_of(report["outcome"]["p50"])) == (
        bucket_of(60),
        bucket_of(101),
    )


def test_retries_are_in_the_outcome_only(api: Api):
    send(api)
    record(LATER)
    assert counts(latency(api)) == (1, 0)
    QueueEntry.objects.update(stage=Stage.READY)
    record(PARKED)
    assert counts(latency(api)) == (1, 0)
    QueueEntry.objects.update(stage=Stage.READY)
    record(OK)
    assert counts(latency(api)) == (1, 1)


def test_an_attempt_after_that_of_a_lost_worker_is_the_first_one(api: Api):
    send(api)
    claim_entries()
    QueueEntry.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    promote_due()
    record(replace(LATER, reason="internal_error"))
    assert counts(latency(api)) == (0, 0)
    QueueEntry.objects.update(stage=Stage.READY)
    record(OK)
    assert counts(latency(api)) == (1, 1)


def test_streams_have_their_recipients_and_main_the_rest(api: Api, workspace: Workspace):
    create_stream(workspace, slug="newsletter", name="News")
    send(api)
    send(api, stream="newsletter", to=["a@example.com", "b@example.com"])
    record(OK)
    assert groups(api, "stream") == {"newsletter": (2, 2), "main": (1, 1)}
    assert [group["name"] for group in latency(api, by="stream")["groups"]] == ["News", "Main"]
    fold()
    assert groups(api, "stream") == {"newsletter": (2, 2), "main": (1, 1)}
    assert counts(latency(api)) == (3, 3)


def test_receivers_of_the_table_have_their_recipients_and_other_the_rest(api: Api):
    for receiver in ("google", "google", "yahoo", "mx.unknown.example", ""):
        send(api)
        record(replace(OK, receiver=receiver))
    # The receiver of an earlier attempt.
    send(api)
    record(replace(LATER, receiver="yahoo"))
    QueueEntry.objects.update(stage=Stage.READY)
    record(FAILED)
    expected = {"google": (2, 2), "other": (2, 2), "yahoo": (2, 2)}
    assert groups(api, "receiver") == expected
    fold()
    assert groups(api, "receiver") == expected
    assert {group["id"]: group["name"] for group in latency(api, by="receiver")["groups"]} == {
        "google": "Google",
        "yahoo": "Yahoo",
        "other": "other",
    }


def test_the_time_before_a_schedule_and_in_a_paused_batch_does_not_count(api: Api, workspace: Workspace):
    batch = create_batch(workspace, limits=NO_LIMITS)
    ahead = timezone.now() + HOUR
    accept(workspace, "on-time@example.com", "follower@example.com", scheduled_for=ahead)
    accept(workspace, "late@example.com", scheduled_for=ahead)
    accept(workspace, "paused@example.com", scheduled_for=ahead, batch_id=batch.id)
    pause_batch(batch, limits=NO_LIMITS)
    # Accepted a day ago; two emails were due an hour ago, one of which is late, and the third is due now.
    Email.objects.update(created_at=F("created_at") - DAY)
    for email in Email.objects.filter(Q(to__contains=["late@example.com"]) | Q(batch=batch)):
        Email.objects.filter(id=email.id).update(scheduled_for=ahead - 2 * HOUR)
        QueueEntry.objects.filter(recipient__email=email).update(since=ahead - 2 * HOUR)
    QueueEntry.objects.filter(recipient__email__to__contains=["on-time@example.com"]).update(since=timezone.now())
    resume_batch(batch, limits=NO_LIMITS)
    make_due()
    promote_due()
    record(OK)
    outcome = latency(api)["outcome"]
    assert (outcome["count"], outcome["within10Seconds"], outcome["within10Minutes"]) == (4, 0.75, 0.75)


def test_the_time_in_a_paused_stream_does_not_count(api: Api, workspace: Workspace):
    create_stream(workspace, slug="newsletter", name="News")
    send(api, stream="newsletter")
    pause_stream(workspace, "newsletter", reason="complaints")
    age_entries(3600)
    # Held five seconds after it was accepted.
    held_at = timezone.now() - timedelta(seconds=3595)
    QueueEntry.objects.update(stage=Stage.HELD, rank=Stream.objects.get().number, due_at=held_at)
    resume_stream(workspace, "newsletter")
    promote_due()
    record(OK)
    assert latency(api)["outcome"]["within10Seconds"] == 1


def test_test_emails_and_the_simulator_are_not_counted(api: Api, workspace: Workspace):
    send(api, to="delivered@simulator.example")
    send(Api(make_key(workspace, "sending_access", limits=KeyLimits(is_test=True))))
    record(OK)
    assert counts(latency(api)) == (0, 0)
    assert not any(sum(histogram.values()) for histogram in read_installation().values())


def count(workspace: Workspace, at: Any, bucket: int, number: int = 1) -> None:
    key = counter_name(Latency.OUTCOME, bucket)
    counters.add([(counters.CounterKey(histogram_id(workspace.id), at, key), number)])


def test_a_range_has_whole_hours_and_is_echoed(api: Api, workspace: Workspace):
    for hours in range(-30, 31):
        count(workspace, NOON + hours * HOUR, 5)
        if hours % 3:
            counters.fold()
    report = latency(api, from_="2026-03-15T10:30:00Z", to="2026-03-15T13:30:00Z")
    assert (report["from"], report["to"]) == ("2026-03-15T10:00:00.000Z", "2026-03-15T14:00:00.000Z")
    assert report["outcome"]["count"] == 4
    for start, end in ((-30, 31), (-20, 20), (-12, 12), (0, 1), (5, 5), (-40, -29)):
        query = {"from_": f"{NOON + start * HOUR:%Y-%m-%dT%H:%M:%SZ}", "to": f"{NOON + end * HOUR:%Y-%m-%dT%H:%M:%SZ}"}
        expected = sum(start <= hours < end for hours in range(-30, 31))
        assert latency(api, **query)["outcome"]["count"] == expected, (start, end)


def test_the_default_is_thirty_days(api: Api, workspace: Workspace):
    now = timezone.now()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    count(workspace, midnight - 30 * DAY, 5)
    count(workspace, midnight - 30 * DAY - HOUR, 5)
    count(workspace, now, 5)
    report = latency(api)
    assert (report["outcome"]["count"], report["from"][:10]) == (2, f"{midnight - 30 * DAY:%Y-%m-%d}")
    # The current hour is not in a range that ends with its start.
    assert latency(api, to=f"{counters.hour_of(now):%Y-%m-%dT%H:%M:%SZ}")["outcome"]["count"] == 1


@each(
    ("query", "code"),
    [
        ({"by": "domain"}, {"by": "invalid_choice"}),
        ({"from": "x"}, {"from": "invalid"}),
        ({"from": "2026-03-15", "to": "2026-03-14"}, {"from": "invalid_range"}),
        ({"from": "2025-03-14", "to": "2026-03-15"}, {"from": "invalid_range"}),
        ({"from": "0001-01-01", "to": "9999-12-31"}, {"from": "invalid_range"}),
        ({"stream": "main"}, {"stream": "unknown_parameter"}),
    ],
)
def test_invalid_queries_are_422(api: Api, query, code):
    assert field_codes(api.get(PATH, query)) == code


@each("query", [{"from_": "2025-03-15", "to": "2026-03-15"}, {"to": "0001-01-01"}, {"from_": "9999-12-31"}])
def test_ranges_of_a_year_and_at_the_ends_of_time(api: Api, query):
    assert counts(latency(api, **query)) == (0, 0)


def test_another_workspaces_recipients_do_not_count(api: Api, bob: Account):
    count(bob.workspace, timezone.now(), 3)
    assert counts(latency(api)) == (0, 0)


FILL = """
INSERT INTO analytics_tally (workspace_id, hour, key, count)
SELECT histogram, day + interval '1 hour' * hour, 'latency.' || kind || '.' || bucket, 10
  FROM unnest(%(histograms)s::uuid[]) AS histogram,
       generate_series(now() - interval '180 days', now(), '1 day') AS day, generate_series(0, 23, 8) AS hour,
       unnest(ARRAY['first', 'outcome']) AS kind, generate_series(4, 14) AS bucket
    ON CONFLICT DO NOTHING
"""
FILL_DAYS = """
INSERT INTO analytics_tallyday (workspace_id, day, key, count)
SELECT workspace_id, (hour AT TIME ZONE 'UTC')::date, key, sum(count) FROM analytics_tally GROUP BY 1, 2, 3
"""


def test_a_month_is_read_by_index_among_half_a_year_of_many_histograms(api: Api, workspace: Workspace, settings):
    receivers = [histogram_id(workspace.id, receiver=one.key) for one in settings.RECEIVERS.receivers]
    histograms = [to_uuid(one, prefix="ws_") for one in (histogram_id(workspace.id), *receivers)]
    with connection.cursor() as cursor:
        cursor.execute(FILL, {"histograms": histograms})
        cursor.execute(FILL_DAYS)
        cursor.execute("ANALYZE analytics_tally, analytics_tallyday, analytics_tallydelta")
    now = counters.hour_of(timezone.now())
    for asked in (histograms, histograms[:1]):
        plan = plan_of(READ, {"histograms": asked, **counters.range_values(now - 30 * DAY, now)})
        assert not re.search(r"Seq Scan on analytics_tally(day)?\b", plan), plan
    with CaptureQueriesContext(connection) as queries:
        latency(api, by="receiver")
    assert sum("analytics_tally" in query["sql"] for query in queries) == 1


def test_the_installation_counts_each_recipient_once(api: Api, workspace: Workspace):
    create_stream(workspace, slug="newsletter", name="News")
    send(api, stream="newsletter")
    age_entries(5)
    record(replace(OK, receiver="google"))
    for histogram in read_installation().values():
        assert {bucket: count for bucket, count in histogram.items() if count} == {bucket_of(5): 1}
