"""Delivery: from a published event to the request at the receiver and the recorded outcome."""

import json
import time
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from core.lib.sql import run
from core.lib.worker.lease_queue import FIRST, Cursor
from core.lib.worker.stages import Stage
from core.workspaces.models import Workspace
from tests.conftest import make_account
from tests.core.lib.worker.outages import expect_outage, lose_connection
from tests.plans import plan_of, prefer_indexes
from tests.webhooks.conftest import make_endpoint, pass_time, publish_event, publish_many
from tests.webhooks.receiver import status
from webhooks.models import PendingDelivery, Webhook, WebhookDelivery, WebhookEvent
from webhooks.sending import queue, webhooks_work
from webhooks.sending.endpoint_shares import FULL_PACE, SLOW_PACE
from webhooks.sending.outcomes import FAILING_REASON, GONE_REASON, AttemptResult, record
from webhooks.sending.post import PostAttempt
from webhooks.sending.queue import EndpointShares
from webhooks.sending.webhooks_work import WebhookQueueWork
from webhooks.services import delete_webhook, replay_delivery, send_test, update_webhook
from webhooks.tasks import expire

pytestmark = pytest.mark.django_db

OK = PostAttempt(200, "", "ok", 0.01)
DOWN = PostAttempt(503, "status", "no", 0.01)


def claim(limit=100):
    return Cursor().claim(limit, EndpointShares(100))


def seconds_until_due() -> float:
    return (PendingDelivery.objects.get().due_at - timezone.now()).total_seconds()


def wait_after(attempt) -> tuple[float, float]:
    """Make an attempt; return the seconds until the next one, counted from the attempt's end and from its start.

    The start is by the database, whose time is that of the test's transaction.
    """
    ((started_at,),) = run("SELECT now()")
    attempt()
    return seconds_until_due(), (PendingDelivery.objects.get().due_at - started_at).total_seconds()


def test_an_event_is_posted_once_and_its_success_recorded(alice, endpoint, receiver, process_queue):
    event_id = publish_event(alice, kind="bounced", code=550)
    process_queue()
    (request,) = receiver.received
    body = json.loads(request.body)
    assert (body["id"], body["type"], body["event"], body["data"]["code"]) == (
        event_id,
        "email.bounced",
        "bounced",
        550,
    )
    assert request.path == "/hook"
    assert request.header("content-type") == "application/json"
    assert request.header("user-agent").startswith("Postrider")
    assert request.header("webhook-id") == event_id
    assert request.body.decode().count("Grüße") == 1, "UTF-8, not escaped"
    delivery = endpoint.delivery()
    assert (delivery.status, delivery.attempt_count, delivery.status_code, delivery.error) == ("succeeded", 1, 200, "")
    assert delivery.succeeded_at is not None
    (attempt,) = delivery.attempts
    assert (attempt["statusCode"], attempt["error"], attempt["answer"]) == (200, None, "ok")
    assert attempt["durationMs"] >= 0
    assert attempt["headers"] == {name: request.header(name) for name in attempt["headers"]}
    assert {"webhook-id", "webhook-timestamp", "webhook-signature", "x-service-signature"} == set(attempt["headers"])
    assert not PendingDelivery.objects.exists()


def test_an_event_that_cannot_be_rendered_does_not_stop_the_others(alice, endpoint, receiver, process_queue):
    Webhook.objects.update(format="sendgrid")
    broken, whole = publish_event(alice), publish_event(alice, metadata={}, tags=[])
    process_queue()
    (request,) = receiver.received
    assert json.loads(request.body)[0]["sg_event_id"] == whole
    assert WebhookDelivery.objects.get(event=broken).error == "internal_error"


def test_the_timestamp_of_a_post_comes_from_the_databases_clock(alice, endpoint, receiver, process_queue):
    with time_machine.travel(timezone.now() + timedelta(hours=26)):
        publish_event(alice)
        process_queue()
    (request,) = receiver.received
    assert abs(int(request.header("webhook-timestamp")) - time.time()) < 60


def test_only_subscribed_active_endpoints_get_an_event(alice, bob, receiver, process_queue):
    make_endpoint(alice, receiver.url("/delivered"), events=("delivered",))
    make_endpoint(alice, receiver.url("/both"), events=("opened", "delivered"))
    make_endpoint(alice, receiver.url("/opened"), events=("opened",))
    disabled = make_endpoint(alice, receiver.url("/off"))
    update_webhook(disabled.webhook, changes={"active": False})
    make_endpoint(bob, receiver.url("/bob"))
    publish_event(alice)
    publish_event(alice, kind="queued")
    process_queue()
    assert sorted(request.path for request in receiver.received) == ["/both", "/delivered"]
    assert len({request.body for request in receiver.received}) == 1


def test_a_receiver_that_was_down_gets_the_same_bytes_under_the_same_id(alice, endpoint, receiver, process_queue):
    receiver.answer = status(500)
    events = {publish_event(alice) for _ in range(3)}
    process_queue()
    pass_time(hours=1)
    process_queue()
    receiver.answer = status(200)
    pass_time(hours=6)
    process_queue()
    assert len(receiver.received) == 9
    assert len({request.body for request in receiver.received}) == 3
    assert {request.header("webhook-id") for request in receiver.received} == events
    assert {json.loads(request.body)["id"] for request in receiver.received} == events
    assert set(WebhookDelivery.objects.values_list("status", "attempt_count")) == {("succeeded", 3)}


def test_attempts_follow_the_documented_schedule_and_end(alice, endpoint, receiver, process_queue):
    receiver.answer = status(500)
    publish_event(alice)
    process_queue()
    waits = []
    while PendingDelivery.objects.exists():
        waits.append(seconds_until_due())
        pass_time(seconds=waits[-1] + 5)
        process_queue()
    schedule = [5, 60, 300, 1800, 7200, 18_000, 28_800]
    for wait, expected in zip(waits, schedule, strict=False):
        assert 0.9 * expected - 2 <= wait <= 1.1 * expected
    # The last wait may be shortened by the end of the window.
    assert 0.5 * 28_800 <= waits[7] <= 1.1 * 28_800
    assert (len(waits), len(receiver.received)) == (8, 9)
    assert sum(waits) < timedelta(hours=23, minutes=55).total_seconds()
    assert (endpoint.delivery().status, endpoint.delivery().attempt_count) == ("exhausted", 9)


def test_no_attempt_starts_after_the_window(alice, endpoint, receiver, process_queue):
    publish_event(alice)
    receiver.answer = status(500)
    pass_time(hours=23, minutes=54, seconds=50)
    process_queue()
    assert len(receiver.received) == 1
    pass_time(seconds=11)
    process_queue()
    assert len(receiver.received) == 1
    assert endpoint.delivery().status == "exhausted"


def test_a_wait_that_would_outlast_the_window_is_shortened(alice, endpoint):
    publish_event(alice)
    PendingDelivery.objects.update(attempts=7)
    pass_time(hours=18)
    (claimed,) = claim()
    record([AttemptResult(claimed, DOWN)])
    pending = PendingDelivery.objects.get()
    assert pending.expires_at - pending.due_at == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [("7", 7), ("1", 5), ("3600", 3600), ("999999999", 21_600), ("soon", 5), ("-5", 5)],
)
@pytest.mark.usefixtures("endpoint")
def test_retry_after_is_honoured_within_the_window(alice, receiver, process_queue, retry_after, seconds):
    receiver.answer = status(429, f"Retry-After: {retry_after}")
    publish_event(alice)
    shortest, longest = wait_after(process_queue)
    assert shortest <= seconds + 0.6
    assert longest >= seconds - 0.5


# -0000: the sender does not know its time zone (RFC 5322, section 3.3).
@pytest.mark.parametrize("zone", ["GMT", "+0000", "-0000"])
def test_retry_after_may_be_a_date(alice, endpoint, receiver, process_queue, zone):
    retry_at = timezone.now() + timedelta(minutes=10)
    receiver.answer = status(503, retry_at.strftime(f"Retry-After: %a, %d %b %Y %H:%M:%S {zone}"))
    publish_event(alice)
    shortest, longest = wait_after(process_queue)
    assert shortest <= 601
    assert longest >= 590


def test_410_disables_the_endpoint_at_once(alice, endpoint, receiver, process_queue):
    receiver.answer = status(410)
    publish_event(alice)
    publish_event(alice)
    process_queue()
    endpoint.webhook.refresh_from_db()
    assert (endpoint.webhook.active, endpoint.webhook.disabled_reason) == (False, GONE_REASON)
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"discarded"}
    assert not PendingDelivery.objects.exists()


def test_three_days_without_a_success_disable_the_endpoint(alice, endpoint):
    publish_event(alice)
    record([AttemptResult(claimed, DOWN) for claimed in claim()])
    endpoint.webhook.refresh_from_db()
    assert endpoint.webhook.failing_since is not None
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=2, hours=23))
    publish_event(alice)
    record([AttemptResult(claimed, DOWN) for claimed in claim()])
    endpoint.webhook.refresh_from_db()
    assert endpoint.webhook.active
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=3, seconds=1))
    publish_event(alice)
    record([AttemptResult(claimed, DOWN) for claimed in claim()])
    endpoint.webhook.refresh_from_db()
    assert (endpoint.webhook.active, endpoint.webhook.disabled_reason) == (False, FAILING_REASON)
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"discarded"}


def test_one_success_restarts_the_three_days(alice, endpoint):
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=5))
    publish_event(alice)
    publish_event(alice)
    first, second = claim()
    record([AttemptResult(first, DOWN), AttemptResult(second, OK)])
    endpoint.webhook.refresh_from_db()
    assert (endpoint.webhook.active, endpoint.webhook.failing_since) == (True, None)


def test_internal_errors_do_not_count_against_an_endpoint(alice, endpoint, receiver, process_queue):
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=5))
    endpoint.webhook.secrets.update(sealed_secret="k1.AAAA" + "A" * 60)
    publish_event(alice)
    process_queue()
    endpoint.webhook.refresh_from_db()
    assert endpoint.webhook.active
    assert endpoint.delivery().error == "secret_unreadable"
    assert receiver.received == []


def test_a_secret_that_cannot_be_decrypted_does_not_stop_other_endpoints(alice, endpoint, receiver, process_queue):
    other = make_endpoint(alice, receiver.url("/other"))
    endpoint.webhook.secrets.update(sealed_secret="gone.AAAA")
    publish_event(alice)
    process_queue()
    assert [request.path for request in receiver.received] == ["/other"]
    assert WebhookDelivery.objects.get(webhook=other.webhook).status == "succeeded"


def test_disabling_discards_pending_deliveries_which_can_be_replayed(alice, endpoint, receiver, process_queue):
    receiver.answer = status(500)
    publish_event(alice)
    publish_event(alice)
    process_queue()
    publish_event(alice)
    update_webhook(endpoint.webhook, changes={"active": False})
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"discarded"}
    pass_time(hours=1)
    process_queue()
    assert len(receiver.received) == 2
    receiver.answer = status(200)
    for delivery in WebhookDelivery.objects.all():
        replay_delivery(delivery)
    process_queue()
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"succeeded"}
    assert len({request.body for request in receiver.received}) == 3


def test_deleting_stops_the_deliveries(alice, endpoint, receiver, process_queue):
    publish_event(alice)
    delete_webhook(endpoint.webhook)
    process_queue()
    assert receiver.received == []
    assert not PendingDelivery.objects.exists()


def test_events_published_while_an_endpoint_was_disabled_or_deleted_are_discarded(alice, bob, receiver, process_queue):
    """The publishing transaction saw an active endpoint and committed after it was disabled."""
    disabled, deleted = make_endpoint(alice, receiver.url("/off")), make_endpoint(bob, receiver.url("/gone"))
    publish_event(alice)
    publish_event(bob)
    Webhook.objects.filter(id=disabled.webhook.id).update(active=False)
    Webhook.objects.filter(id=deleted.webhook.id).delete()
    process_queue()
    assert receiver.received == []
    assert not PendingDelivery.objects.exists()
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"discarded"}


def test_a_test_and_a_replay_are_posted_to_a_disabled_endpoint(alice, endpoint, receiver, process_queue):
    publish_event(alice)
    process_queue()
    update_webhook(endpoint.webhook, changes={"active": False})
    send_test(endpoint.webhook)
    replay_delivery(WebhookDelivery.objects.get(is_test=False))
    process_queue()
    assert len(receiver.received) == 3
    assert sorted("test" in json.loads(request.body) for request in receiver.received) == [False, False, True]


def test_a_replay_keeps_the_log_and_the_first_success(alice, endpoint, receiver, process_queue):
    publish_event(alice)
    process_queue()
    before = endpoint.delivery()
    receiver.answer = status(500)
    replayed = replay_delivery(before)
    assert replayed.status == "pending"
    shortest, longest = wait_after(process_queue)
    after = endpoint.delivery()
    assert (after.status, after.attempt_count, after.succeeded_at) == ("pending", 2, before.succeeded_at)
    assert [attempt["statusCode"] for attempt in after.attempts] == [200, 500]
    assert shortest < 6
    assert longest > 4


def test_the_log_keeps_the_last_twenty_attempts(alice, endpoint, receiver, process_queue):
    publish_event(alice)
    for _ in range(22):
        process_queue()
        replay_delivery(endpoint.delivery())
    delivery = endpoint.delivery()
    assert (len(delivery.attempts), delivery.attempt_count) == (20, 22)


def test_a_claimed_delivery_cannot_be_claimed_again(alice, endpoint):
    publish_event(alice)
    assert len(claim()) == 1
    assert claim() == []
    assert list(PendingDelivery.objects.values_list("stage", "fence", "attempts")) == [(Stage.LEASED, 1, 1)]


def test_a_worker_that_lost_its_lease_changes_nothing(alice, endpoint):
    publish_event(alice)
    (lost,) = claim()
    pass_time(minutes=2)
    queue.promote()
    (second,) = claim()
    record([AttemptResult(lost, DOWN)])
    assert endpoint.delivery().status == "pending"
    record([AttemptResult(second, OK)])
    record([AttemptResult(second, DOWN)])
    delivery = endpoint.delivery()
    assert (delivery.status, delivery.attempt_count) == ("succeeded", 2)
    assert [attempt["error"] for attempt in delivery.attempts] == ["worker_lost", None]


@pytest.mark.django_db(transaction=True)
def test_an_outage_while_deliveries_are_loaded_is_no_attempt(alice, endpoint, monkeypatch):
    publish_event(alice)
    work = WebhookQueueWork(None, sessions=8)
    with monkeypatch.context() as patched:
        patched.setattr(webhooks_work, "failpoint", lose_connection)
        for _ in range(3):
            with expect_outage():
                work.claim(8)
            work.unused.give_back()
            assert list(PendingDelivery.objects.values_list("stage", "attempts")) == [(Stage.READY, 0)]
    pass_time(minutes=2)
    queue.promote()
    assert endpoint.delivery().attempts == []
    assert len(work.claim(8).jobs) == 1


def test_a_renewed_lease_does_not_expire(alice, endpoint):
    publish_event(alice)
    (claimed,) = claim()
    pass_time(minutes=2)
    queue.renew([claimed])
    queue.promote()
    assert claim() == []


def test_a_delivery_discarded_in_flight_stays_discarded(alice, endpoint):
    publish_event(alice)
    (claimed,) = claim()
    update_webhook(endpoint.webhook, changes={"active": False})
    record([AttemptResult(claimed, OK)])
    assert endpoint.delivery().status == "discarded"


def test_an_endpoint_has_no_more_in_flight_than_its_pace(alice, endpoint):
    publish_many(alice, 50)
    assert len(claim()) == 4
    assert claim() == []


def test_quick_attempts_raise_the_pace_and_a_slow_attempt_lowers_it(alice, endpoint):
    publish_many(alice, 200)
    paces = []
    for seconds in (0.1, 0.1, 0.1, 0.1, 0.1, 2.1, 0.1):
        record([AttemptResult(claimed, PostAttempt(200, "", "", seconds)) for claimed in claim()])
        endpoint.webhook.refresh_from_db()
        paces.append(endpoint.webhook.pace)
    assert paces == [8, 16, 32, FULL_PACE, FULL_PACE, SLOW_PACE, 4]


def test_endpoints_share_a_claim(alice, bob, receiver):
    make_endpoint(alice, receiver.url())
    make_endpoint(bob, receiver.url())
    Webhook.objects.update(pace=FULL_PACE)
    publish_many(alice, 100)
    publish_many(bob, 3)
    claims = claim(10)
    bobs = Webhook.objects.get(workspace=bob.workspace).id
    assert sum(claimed.webhook_id == bobs for claimed in claims) == 3
    assert 5 <= sum(claimed.webhook_id != bobs for claimed in claims) <= 7


def test_the_cursor_serves_all_endpoints_in_turn(receiver):
    for number in range(5):
        account = make_account(f"w{number}")
        make_endpoint(account, receiver.url())
        publish_many(account, 4)
    cursor = Cursor()
    served = [claimed.webhook_id for _ in range(10) for claimed in cursor.claim(2, EndpointShares(2))]
    assert sorted(served) == sorted(list(Webhook.objects.values_list("id", flat=True)) * 4)


def test_slow_endpoints_share_half_of_the_sessions(alice, bob, receiver, queue_work):
    slow, quick = make_endpoint(alice, receiver.url("/slow")), make_endpoint(bob, receiver.url("/quick"))
    Webhook.objects.filter(id=slow.webhook.id).update(pace=SLOW_PACE)
    queue_work.sessions = 2
    publish_many(alice, 10)
    assert [job.claim.webhook_id for job in queue_work.claim(2).jobs] == [slow.webhook.id]
    publish_many(bob, 10)
    assert {job.claim.webhook_id for job in queue_work.claim(2).jobs} == {quick.webhook.id}


def test_an_endpoint_is_found_behind_any_number_of_full_ones(alice, receiver, monkeypatch):
    monkeypatch.setattr(queue, "MAX_ENDPOINTS", 2)
    for number in range(6):
        make_endpoint(alice, receiver.url(f"/{number}"))
    Webhook.objects.update(pace=SLOW_PACE)
    last = Webhook.objects.order_by("id").last()
    Webhook.objects.filter(id=last.id).update(pace=FULL_PACE)
    publish_many(alice, 3)
    claims = Cursor().claim(100, EndpointShares(0))
    assert {claimed.webhook_id for claimed in claims} == {last.id}
    assert len(claims) == 3


def test_publishing_and_recording_take_a_fixed_number_of_statements(
    alice, bob, receiver, django_assert_max_num_queries
):
    for account in (alice, bob):
        make_endpoint(account, receiver.url("/one"))
        make_endpoint(account, receiver.url("/two"))
    Webhook.objects.update(pace=FULL_PACE)
    with django_assert_max_num_queries(2):
        publish_many(alice, 50)
    claims = claim()
    with django_assert_max_num_queries(10):
        record([AttemptResult(claimed, attempt) for claimed, attempt in zip(claims, [OK, DOWN] * 50, strict=False)])


def test_the_lag_is_the_age_of_the_oldest_delivery_that_could_be_claimed(alice, endpoint):
    assert queue.lag() is None
    publish_many(alice, 10)
    pass_time(minutes=3)
    assert 179 < queue.lag().total_seconds() < 182
    assert len(claim()) == 4
    assert queue.lag() is None, "the rest waits because of the pace of the endpoint"
    pass_time(minutes=2)
    assert 50 < queue.lag().total_seconds() < 70, "leases that expired a minute ago"


def test_events_can_be_deleted_by_age(alice, bob, receiver, process_queue):
    for account in (alice, bob):
        make_endpoint(account, receiver.url())
        for _ in range(3):
            publish_event(account)
    events = WebhookEvent.objects
    events.filter(workspace_id=alice.workspace.id).update(created_at=timezone.now() - timedelta(days=8))
    before = timezone.now() - timedelta(days=7)
    assert [events.delete_older(alice.workspace.id, before=before, limit=2) for _ in range(3)] == [2, 1, 0]
    assert events.delete_older(bob.workspace.id, before=before, limit=2) == 0
    assert (events.count(), WebhookDelivery.objects.count(), PendingDelivery.objects.count()) == (3, 3, 3)


def test_the_daily_sweep_keeps_events_within_the_plans_retention(alice, receiver, process_queue):
    make_endpoint(alice, receiver.url())
    Workspace.objects.update(plan="free")
    kept, expired = publish_event(alice), publish_event(alice)
    WebhookEvent.objects.filter(id=expired).update(created_at=timezone.now() - timedelta(days=8))
    expire()
    assert list(WebhookEvent.objects.values_list("id", flat=True)) == [kept]


def test_the_claim_reads_the_indexes(alice, endpoint):
    prefer_indexes()
    find = plan_of(queue.FIND_ENDPOINTS, {"after": FIRST, "least_pace": 2, "max_endpoints": 200})
    lease = plan_of(queue.LEASE, {"webhooks": [], "shares": [], "limit": 100})
    for plan in (find, lease):
        assert "webhook_pending_turn" in plan
        assert "Seq Scan on webhooks_pending" not in plan
