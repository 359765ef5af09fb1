"""From an announced event to a request that a receiver got, and what is written down of it."""

import json
import time
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from tests.conftest import make_account
from tests.webhooks.conftest import make_endpoint, pass_time, tell, tell_many
from tests.webhooks.receiver import status
from webhooks.models import Pending, Webhook, WebhookDelivery, WebhookEvent
from webhooks.sending import queue
from webhooks.sending.endpoint_shares import FULL_PACE, SLOW_PACE
from webhooks.sending.outcomes import FAILING_REASON, GONE_REASON, Result, record
from webhooks.sending.post import Attempt
from webhooks.services import delete_webhook, replay_delivery, send_test, update_webhook
from webhooks.tasks import expire
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

OK = Attempt(200, "", "ok", 0.01)
DOWN = Attempt(503, "status", "no", 0.01)
START = queue.FIRST


def claim(limit=100):
    return queue.Cursor().claim(limit, slow_limit=100)


def seconds_until_due() -> float:
    return (Pending.objects.get().due_at - timezone.now()).total_seconds()


def test_an_event_is_posted_once_and_its_success_written_down(alice, endpoint, receiver, drain):
    event_id = tell(alice, kind="bounced", code=550)
    drain()
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
    assert request.body.decode().count("Grüße") == 1, "UTF-8, as it is"
    delivery = endpoint.delivery()
    assert (delivery.status, delivery.attempt_count, delivery.status_code, delivery.error) == ("succeeded", 1, 200, "")
    assert delivery.succeeded_at is not None
    (attempt,) = delivery.attempts
    assert (attempt["statusCode"], attempt["error"], attempt["answer"]) == (200, None, "ok")
    assert attempt["durationMs"] >= 0
    assert not Pending.objects.exists()


def test_a_post_is_dated_by_the_databases_clock_whatever_the_workers_says(alice, endpoint, receiver, drain):
    with time_machine.travel(timezone.now() + timedelta(hours=26)):
        tell(alice)
        drain()
    (request,) = receiver.received
    assert abs(int(request.header("webhook-timestamp")) - time.time()) < 60


def test_only_endpoints_that_subscribed_and_are_on_are_told(alice, bob, receiver, drain):
    make_endpoint(alice, receiver.url("/delivered"), events=("delivered",))
    make_endpoint(alice, receiver.url("/both"), events=("opened", "delivered"))
    make_endpoint(alice, receiver.url("/opened"), events=("opened",))
    off = make_endpoint(alice, receiver.url("/off"))
    update_webhook(off.webhook, changes={"active": False})
    make_endpoint(bob, receiver.url("/bob"))
    tell(alice)
    tell(alice, kind="queued")
    drain()
    assert sorted(request.path for request in receiver.received) == ["/both", "/delivered"]
    assert len({request.body for request in receiver.received}) == 1


def test_a_receiver_that_was_down_gets_the_same_bytes_under_the_same_id(alice, endpoint, receiver, drain):
    receiver.answer = status(500)
    events = {tell(alice) for _ in range(3)}
    drain()
    pass_time(hours=1)
    drain()
    receiver.answer = status(200)
    pass_time(hours=6)
    drain()
    assert len(receiver.received) == 9
    assert len({request.body for request in receiver.received}) == 3
    assert {request.header("webhook-id") for request in receiver.received} == events
    assert {json.loads(request.body)["id"] for request in receiver.received} == events
    assert set(WebhookDelivery.objects.values_list("status", "attempt_count")) == {("succeeded", 3)}


def test_attempts_follow_the_printed_schedule_and_end(alice, endpoint, receiver, drain):
    receiver.answer = status(500)
    tell(alice)
    drain()
    waits = []
    while Pending.objects.exists():
        waits.append(seconds_until_due())
        pass_time(seconds=waits[-1] + 5)
        drain()
    schedule = [5, 60, 300, 1800, 7200, 18_000, 28_800]
    for wait, expected in zip(waits, schedule, strict=False):
        assert 0.9 * expected - 2 <= wait <= 1.1 * expected
    # The last may be cut by the end of the window.
    assert 0.5 * 28_800 <= waits[7] <= 1.1 * 28_800
    assert (len(waits), len(receiver.received)) == (8, 9)
    assert sum(waits) < timedelta(hours=23, minutes=55).total_seconds()
    assert (endpoint.delivery().status, endpoint.delivery().attempt_count) == ("exhausted", 9)


def test_no_attempt_begins_after_the_window(alice, endpoint, receiver, drain):
    tell(alice)
    receiver.answer = status(500)
    pass_time(hours=23, minutes=54, seconds=50)
    drain()
    assert len(receiver.received) == 1
    pass_time(seconds=11)
    drain()
    assert len(receiver.received) == 1
    assert endpoint.delivery().status == "exhausted"


def test_a_wait_that_would_end_beyond_the_window_is_cut_to_its_end(alice, endpoint):
    tell(alice)
    Pending.objects.update(attempts=7)
    pass_time(hours=18)
    (held,) = claim()
    record([Result(held, DOWN)])
    pending = Pending.objects.get()
    assert pending.expires_at - pending.due_at == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("7", 7), ("1", 5), ("3600", 3600), ("999999999", 21_600), ("soon", 5), ("-5", 5)],
)
@pytest.mark.usefixtures("endpoint")
def test_retry_after_is_honoured_within_the_window(alice, receiver, drain, asked, seconds):
    receiver.answer = status(429, f"Retry-After: {asked}")
    tell(alice)
    drain()
    assert seconds - 2 <= seconds_until_due() <= seconds + 0.6


def test_retry_after_may_be_a_date(alice, endpoint, receiver, drain):
    moment = timezone.now() + timedelta(minutes=10)
    receiver.answer = status(503, moment.strftime("Retry-After: %a, %d %b %Y %H:%M:%S GMT"))
    tell(alice)
    drain()
    assert 590 <= seconds_until_due() <= 601


def test_410_turns_the_endpoint_off_at_once(alice, endpoint, receiver, drain):
    receiver.answer = status(410)
    tell(alice)
    tell(alice)
    drain()
    endpoint.webhook.refresh_from_db()
    assert (endpoint.webhook.active, endpoint.webhook.disabled_reason) == (False, GONE_REASON)
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"discarded"}
    assert not Pending.objects.exists()


def test_three_days_without_a_success_turn_it_off(alice, endpoint):
    tell(alice)
    record([Result(held, DOWN) for held in claim()])
    endpoint.webhook.refresh_from_db()
    assert endpoint.webhook.failing_since is not None
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=2, hours=23))
    tell(alice)
    record([Result(held, DOWN) for held in claim()])
    endpoint.webhook.refresh_from_db()
    assert endpoint.webhook.active
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=3, seconds=1))
    tell(alice)
    record([Result(held, DOWN) for held in claim()])
    endpoint.webhook.refresh_from_db()
    assert (endpoint.webhook.active, endpoint.webhook.disabled_reason) == (False, FAILING_REASON)
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"discarded"}


def test_one_success_begins_the_three_days_anew(alice, endpoint):
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=5))
    tell(alice)
    tell(alice)
    first, second = claim()
    record([Result(first, DOWN), Result(second, OK)])
    endpoint.webhook.refresh_from_db()
    assert (endpoint.webhook.active, endpoint.webhook.failing_since) == (True, None)


def test_our_own_faults_are_not_held_against_an_endpoint(alice, endpoint, receiver, drain):
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=5))
    endpoint.webhook.secrets.update(sealed_secret="k1.AAAA" + "A" * 60)
    tell(alice)
    drain()
    endpoint.webhook.refresh_from_db()
    assert endpoint.webhook.active
    assert endpoint.delivery().error == "secret_unreadable"
    assert receiver.received == []


def test_a_secret_that_cannot_be_opened_stops_nobody_else(alice, endpoint, receiver, drain):
    other = make_endpoint(alice, receiver.url("/other"))
    endpoint.webhook.secrets.update(sealed_secret="gone.AAAA")
    tell(alice)
    drain()
    assert [request.path for request in receiver.received] == ["/other"]
    assert WebhookDelivery.objects.get(webhook=other.webhook).status == "succeeded"


def test_turning_off_discards_what_waits_and_it_can_be_replayed(alice, endpoint, receiver, drain):
    receiver.answer = status(500)
    tell(alice)
    tell(alice)
    drain()
    tell(alice)
    update_webhook(endpoint.webhook, changes={"active": False})
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"discarded"}
    pass_time(hours=1)
    drain()
    assert len(receiver.received) == 2
    receiver.answer = status(200)
    for delivery in WebhookDelivery.objects.all():
        replay_delivery(delivery)
    drain()
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"succeeded"}
    assert len({request.body for request in receiver.received}) == 3


def test_deleting_stops_the_deliveries(alice, endpoint, receiver, drain):
    tell(alice)
    delete_webhook(endpoint.webhook)
    drain()
    assert receiver.received == []
    assert not Pending.objects.exists()


def test_what_was_announced_while_an_endpoint_was_turned_off_or_deleted_is_discarded(alice, bob, receiver, drain):
    """An announcement that had seen the endpoint on, and was committed after it was turned off."""
    off, gone = make_endpoint(alice, receiver.url("/off")), make_endpoint(bob, receiver.url("/gone"))
    tell(alice)
    tell(bob)
    Webhook.objects.filter(id=off.webhook.id).update(active=False)
    Webhook.objects.filter(id=gone.webhook.id).delete()
    drain()
    assert receiver.received == []
    assert not Pending.objects.exists()
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"discarded"}


def test_a_test_and_a_replay_are_made_though_the_endpoint_is_off(alice, endpoint, receiver, drain):
    tell(alice)
    drain()
    update_webhook(endpoint.webhook, changes={"active": False})
    send_test(endpoint.webhook)
    replay_delivery(WebhookDelivery.objects.get(is_test=False))
    drain()
    assert len(receiver.received) == 3
    assert sorted("test" in json.loads(request.body) for request in receiver.received) == [False, False, True]


def test_a_replay_keeps_the_log_and_the_first_success(alice, endpoint, receiver, drain):
    tell(alice)
    drain()
    before = endpoint.delivery()
    receiver.answer = status(500)
    replayed = replay_delivery(before)
    assert replayed.status == "pending"
    drain()
    after = endpoint.delivery()
    assert (after.status, after.attempt_count, after.succeeded_at) == ("pending", 2, before.succeeded_at)
    assert [attempt["statusCode"] for attempt in after.attempts] == [200, 500]
    assert 4 < seconds_until_due() < 6


def test_the_log_keeps_the_last_twenty_attempts(alice, endpoint, receiver, drain):
    tell(alice)
    for _ in range(22):
        drain()
        replay_delivery(endpoint.delivery())
    delivery = endpoint.delivery()
    assert (len(delivery.attempts), delivery.attempt_count) == (20, 22)


def test_a_claimed_delivery_is_nobody_elses(alice, endpoint):
    tell(alice)
    assert len(claim()) == 1
    assert claim() == []
    assert list(Pending.objects.values_list("stage", "fence", "attempts")) == [(Pending.Stage.LEASED, 1, 1)]


def test_a_worker_that_lost_its_lease_changes_nothing(alice, endpoint):
    tell(alice)
    (lost,) = claim()
    pass_time(minutes=2)
    queue.promote()
    (again,) = claim()
    record([Result(lost, DOWN)])
    assert endpoint.delivery().status == "pending"
    record([Result(again, OK)])
    record([Result(again, DOWN)])
    delivery = endpoint.delivery()
    assert (delivery.status, delivery.attempt_count) == ("succeeded", 2)
    assert [attempt["error"] for attempt in delivery.attempts] == ["worker_lost", None]


def test_a_renewed_lease_does_not_expire(alice, endpoint):
    tell(alice)
    (held,) = claim()
    pass_time(minutes=2)
    queue.renew([held])
    queue.promote()
    assert claim() == []


def test_discarded_under_way_is_not_written_over(alice, endpoint):
    tell(alice)
    (held,) = claim()
    update_webhook(endpoint.webhook, changes={"active": False})
    record([Result(held, OK)])
    assert endpoint.delivery().status == "discarded"


def test_an_endpoint_has_no_more_under_way_than_its_pace(alice, endpoint):
    tell_many(alice, 50)
    assert len(claim()) == 4
    assert claim() == []


def test_quick_rounds_raise_the_pace_and_a_slow_attempt_lowers_it(alice, endpoint):
    tell_many(alice, 200)
    paces = []
    for seconds in (0.1, 0.1, 0.1, 0.1, 0.1, 2.1, 0.1):
        record([Result(held, Attempt(200, "", "", seconds)) for held in claim()])
        endpoint.webhook.refresh_from_db()
        paces.append(endpoint.webhook.pace)
    assert paces == [8, 16, 32, FULL_PACE, FULL_PACE, SLOW_PACE, 4]


def test_endpoints_share_a_claim(alice, bob, receiver):
    make_endpoint(alice, receiver.url())
    make_endpoint(bob, receiver.url())
    Webhook.objects.update(pace=FULL_PACE)
    tell_many(alice, 100)
    tell_many(bob, 3)
    claims = claim(10)
    bobs = Webhook.objects.get(workspace=bob.workspace).id
    assert sum(held.webhook_id == bobs for held in claims) == 3
    assert 5 <= sum(held.webhook_id != bobs for held in claims) <= 7


def test_the_cursor_goes_round_all_endpoints(receiver):
    for number in range(5):
        account = make_account(f"w{number}")
        make_endpoint(account, receiver.url())
        tell_many(account, 4)
    cursor = queue.Cursor()
    served = [held.webhook_id for _ in range(10) for held in cursor.claim(2, slow_limit=2)]
    assert sorted(served) == sorted(list(Webhook.objects.values_list("id", flat=True)) * 4)


def test_slow_endpoints_share_half_of_the_sessions(alice, bob, receiver, sending):
    slow, quick = make_endpoint(alice, receiver.url("/slow")), make_endpoint(bob, receiver.url("/quick"))
    Webhook.objects.filter(id=slow.webhook.id).update(pace=SLOW_PACE)
    sending.sessions = 2
    tell_many(alice, 10)
    assert [posting.claim.webhook_id for posting in sending.claim(2)] == [slow.webhook.id]
    tell_many(bob, 10)
    assert {posting.claim.webhook_id for posting in sending.claim(2)} == {quick.webhook.id}


def test_an_endpoint_is_found_behind_any_number_that_are_full(alice, receiver, monkeypatch):
    monkeypatch.setattr(queue, "LANES", 2)
    for number in range(6):
        make_endpoint(alice, receiver.url(f"/{number}"))
    Webhook.objects.update(pace=SLOW_PACE)
    last = Webhook.objects.order_by("id").last()
    Webhook.objects.filter(id=last.id).update(pace=FULL_PACE)
    tell_many(alice, 3)
    claims = queue.Cursor().claim(100, slow_limit=0)
    assert {held.webhook_id for held in claims} == {last.id}
    assert len(claims) == 3


def test_recording_and_packing_take_a_fixed_number_of_statements(alice, bob, receiver, django_assert_max_num_queries):
    for account in (alice, bob):
        make_endpoint(account, receiver.url("/one"))
        make_endpoint(account, receiver.url("/two"))
    Webhook.objects.update(pace=FULL_PACE)
    with django_assert_max_num_queries(2):
        tell_many(alice, 50)
    claims = claim()
    with django_assert_max_num_queries(10):
        record([Result(held, attempt) for held, attempt in zip(claims, [OK, DOWN] * 50, strict=False)])


def test_the_lag_is_the_age_of_the_oldest_that_could_go(alice, endpoint):
    assert queue.lag() is None
    tell_many(alice, 10)
    pass_time(minutes=3)
    assert 179 < queue.lag().total_seconds() < 182
    assert len(claim()) == 4
    assert queue.lag() is None, "the rest is held back by the endpoint's own limit"
    pass_time(minutes=2)
    assert 50 < queue.lag().total_seconds() < 70, "leases that ran out a minute ago"


def test_events_can_be_deleted_by_age(alice, bob, receiver, drain):
    for account in (alice, bob):
        make_endpoint(account, receiver.url())
        for _ in range(3):
            tell(account)
    events = WebhookEvent.objects
    events.filter(workspace_id=alice.workspace.id).update(created_at=timezone.now() - timedelta(days=8))
    before = timezone.now() - timedelta(days=7)
    assert [events.delete_older(alice.workspace.id, before=before, limit=2) for _ in range(3)] == [2, 1, 0]
    assert events.delete_older(bob.workspace.id, before=before, limit=2) == 0
    assert (events.count(), WebhookDelivery.objects.count(), Pending.objects.count()) == (3, 3, 3)


def test_the_daily_sweep_keeps_what_the_plan_keeps(alice, receiver, drain):
    make_endpoint(alice, receiver.url())
    Workspace.objects.update(plan="free")
    kept, expired = tell(alice), tell(alice)
    WebhookEvent.objects.filter(id=expired).update(created_at=timezone.now() - timedelta(days=8))
    expire()
    assert list(WebhookEvent.objects.values_list("id", flat=True)) == [kept]


def test_the_claim_reads_the_indexes(alice, endpoint):
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN " + queue.LOOK, {"after": START, "least_pace": 2, "lanes": 200})
        look = "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute("EXPLAIN " + queue.TAKE, [[], [], 60])
        take = "\n".join(row[0] for row in cursor.fetchall())
    for plan in (look, take):
        assert "webhook_pending_turn" in plan
        assert "Seq Scan on webhooks_pending" not in plan
