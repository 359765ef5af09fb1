"""Rereading: messages that could not be read return to the queue, and their emails are published with their content."""

import itertools
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F, Sum
from django.db.models.functions import Now

from core.counters.models import CounterDelta
from core.lib.ids import to_uuid
from core.workspaces.models import AuditEntry
from emails.models import Recipient
from emails.sending.reply_address import reply_address
from events.models import Event
from receiving.arrival.routing import decide_recipient
from receiving.arrival.storing import Arrival, store_message
from receiving.deletion import delete_delivered_emails
from receiving.forwarding.forwards import refusal
from receiving.models import Forward, ForwardTarget, Message, ReceivedEmail
from receiving.processing import oldest_stored_seconds
from receiving.received_work import ReceivedQueueWork
from receiving.states import NOT_READ, TOO_EXPENSIVE
from receiving.unread import rereading
from tests.conftest import Api, make_domain
from tests.emails.builders import send
from tests.erasing import erase_person
from tests.events.feed import publish_committed
from tests.receiving.builders import PLAIN, arrive, make_route, process_received, receive, receive_for, with_field
from tests.rows import each
from webhooks.models import WebhookDelivery, WebhookEvent
from webhooks.sending.queue import discard_pending

pytestmark = pytest.mark.django_db


def fail_to_read() -> None:
    """Claim the due messages, and record that they could not be read."""
    work = ReceivedQueueWork()
    jobs = work.claim(16).jobs
    assert jobs
    work.record([work.crash_result(job, ValueError()) for job in jobs])


def receive_unreadable(source: bytes = PLAIN, to: str = "support@alice.example") -> ReceivedEmail:
    email = arrive(source, to)
    fail_to_read()
    return ReceivedEmail.objects.get(id=email.id)


def receive_blocked(reason: str = "not_a_reply", **values: Any) -> ReceivedEmail:
    """Return an email that versions before 1.0 blocked by a rule, although its message was not read."""
    email = arrive(**values)
    Message.objects.filter(id=email.message_id).update(read_at=Now(), parse_errors=[NOT_READ], attempts=4)
    ReceivedEmail.objects.filter(id=email.id).update(
        status="blocked", blocked_reason=reason, processed_at=F("received_at")
    )
    return email


def reread(key: Api, email: ReceivedEmail) -> None:
    response = key.post(f"/inbound/emails/{email.id}/reread")
    assert (response.status_code, response.json().keys()) == (202, {"id", "queuedAt"}), response.content
    process_received()


def wait_an_hour() -> None:
    Message.objects.update(read_at=F("read_at") - rereading.PAUSE)


def received_events() -> list[Event]:
    return list(Event.objects.filter(kind="received"))


def count_received() -> int:
    return CounterDelta.objects.filter(key="received").aggregate(n=Sum("change"))["n"] or 0


def test_an_unreadable_email_is_published_again_with_its_content(key, route, webhook):
    email = receive_unreadable()
    publish_committed()
    assert (email.status, email.subject) == ("unreadable", "")
    reread(key, email)
    shown = key.get(f"/inbound/emails/{email.id}").json()
    assert (shown["status"], shown["subject"], shown["parseErrors"]) == ("processed", "Where is my order?", [])
    assert (shown["from"]["email"], shown["authentication"]["result"]) == ("ada@example.com", "none")
    publish_committed()
    first, second = received_events()
    assert first.payload == second.payload == {"id": email.id}
    email.refresh_from_db()
    assert (email.unread_event_id, email.event_id, email.sender) == (first.id, second.id, "ada@example.com")
    bodies = {event.id: event.body for event in WebhookEvent.objects.all()}
    assert ["where is my order" in bodies[event.id] for event in (first, second)] == [False, True]
    assert [one["id"] for one in key.get("/events", {"types": "received"}).json()["data"]] == [first.id, second.id]
    assert key.post(f"/inbound/emails/{email.id}/redeliver").json()["deliveries"] == 1
    assert count_received() == 1
    assert [*AuditEntry.objects.filter(act="inbound_reread").values_list("about", flat=True)] == [email.id]


def test_until_it_is_read_an_email_keeps_its_status_and_is_queued_once(key, route):
    email = receive_unreadable()
    first = key.post(f"/inbound/emails/{email.id}/reread").json()
    fence = Message.objects.get().fence
    again = key.post(f"/inbound/emails/{email.id}/reread")
    assert (again.status_code, again.json()) == (202, first)
    assert Message.objects.get().fence == fence
    assert key.get(f"/inbound/emails/{email.id}").json()["status"] == "unreadable"
    assert AuditEntry.objects.filter(act="inbound_reread").count() == 1


def test_what_is_unreadable_again_stays_as_it_was_and_waits_an_hour(key, route, webhook):
    email = receive_unreadable()
    before = Message.objects.values().get()
    assert key.post(f"/inbound/emails/{email.id}/reread").status_code == 202
    fail_to_read()
    after = Message.objects.values().get()
    columns = {name for name in before if after[name] != before[name]}
    assert columns <= {"read_at", "reread_at", "due_at", "fence", "attempts"}
    assert [event.id for event in received_events()] == [email.event_id]
    refused = key.post(f"/inbound/emails/{email.id}/reread")
    assert (refused.status_code, refused.json()["code"]) == (409, "reread_too_soon")
    assert 3_500 <= int(refused["Retry-After"]) <= 3_600
    wait_an_hour()
    reread(key, email)
    assert ReceivedEmail.objects.get().status == "processed"


def test_a_message_that_ends_its_worker_again_ends_one(key, route):
    email = receive_unreadable()
    assert key.post(f"/inbound/emails/{email.id}/reread").status_code == 202
    (job,) = ReceivedQueueWork().claim(16).jobs
    assert job.claim.is_alone
    # Its worker dies; after the lease, another one gives it up.
    Message.objects.update(due_at=F("received_at"))
    process_received()
    email.refresh_from_db()
    assert (email.status, len(received_events()), Message.objects.get().read_at is None) == ("unreadable", 1, False)
    assert key.post(f"/inbound/emails/{email.id}/reread").json()["code"] == "reread_too_soon"


def test_a_result_of_an_earlier_claim_is_not_recorded(key, route):
    arrive()
    work = ReceivedQueueWork()
    (job,) = work.claim(16).jobs
    late = work.crash_result(job, ValueError())
    work.record([late])
    assert key.post(f"/inbound/emails/{ReceivedEmail.objects.get().id}/reread").status_code == 202
    work.record([late])
    assert Message.objects.get().read_at is None


def test_messages_of_a_workspace_are_reread_alone_one_after_the_other(key, route):
    emails = [receive_unreadable(with_field(f"X-Number: {number}")) for number in range(3)]
    for email in emails:
        key.post(f"/inbound/emails/{email.id}/reread")
    due = [*Message.objects.order_by("due_at").values_list("due_at", flat=True)]
    assert [later - earlier for earlier, later in itertools.pairwise(due)] == [rereading.ALONE_GAP] * 2
    assert len(ReceivedQueueWork().claim(16).jobs) == 1
    assert oldest_stored_seconds() < 60


@each("status", ["stored", "processed", "blocked"])
def test_an_email_that_was_read_or_is_new_is_refused(key, alice, receiving, status):
    make_route(alice.workspace, replies_only=status == "blocked")
    email = arrive() if status == "stored" else receive()
    refused = key.post(f"/inbound/emails/{email.id}/reread")
    problem = refused.json()
    assert (refused.status_code, problem["code"], problem["emailStatus"]) == (409, "not_unreadable", status)
    assert not Message.objects.exclude(reread_at=None).exists()


def test_a_message_that_took_too_long_is_reread(key, route):
    email = receive()
    Message.objects.update(parse_errors=["A part is broken", TOO_EXPENSIVE])
    ReceivedEmail.objects.update(status="unreadable")
    reread(key, email)
    assert ReceivedEmail.objects.get().status == "processed"


def test_a_blocked_email_is_judged_by_what_was_read(key, alice, receiving, webhook):
    make_route(alice.workspace, require_authenticated=True, match="strict")
    make_route(alice.workspace)
    good = receive_blocked("sender_blocked")
    strict = receive_blocked(source=with_field("X-Other: 1"), to="strict@alice.example")
    for email in (good, strict):
        reread(key, email)
        Message.objects.filter(read_at=None).update(due_at=Now())
        process_received()
    good.refresh_from_db()
    strict.refresh_from_db()
    wanted = "processed", "", "blocked", "not_authenticated"
    assert (good.status, good.blocked_reason, strict.status, strict.blocked_reason) == wanted
    assert [event.payload["id"] for event in received_events()] == [good.id]
    assert (count_received(), strict.subject) == (1, "Where is my order?")
    assert key.post(f"/inbound/emails/{strict.id}/reread").json()["code"] == "not_unreadable"


def test_an_email_that_was_published_stays_published(key, alice, receiving):
    route = make_route(alice.workspace)
    email = receive_unreadable()
    key.patch(f"/inbound/routes/{route.id}", {"repliesOnly": True})
    reread(key, email)
    assert ReceivedEmail.objects.get().status == "processed"


def test_an_email_that_was_released_unread_is_published_again_and_not_forwarded_before(key, alice, receiving):
    ForwardTarget.objects.create(workspace=alice.workspace, address="grace@example.org", confirmed_at=Now())
    make_route(alice.workspace, match="support", forward_to=["grace@example.org"])
    email = receive_blocked()
    assert key.post(f"/inbound/emails/{email.id}/bypass").json()["status"] == "processed"
    email = ReceivedEmail.objects.select_related("message").get()
    assert refusal(email) == "unreadable"
    reread(key, email)
    email = ReceivedEmail.objects.select_related("message").get()
    assert (len(received_events()), email.subject, refusal(email)) == (2, "Where is my order?", "")
    # Neither a released email is forwarded by its route.
    assert (count_received(), Forward.objects.count()) == (1, 0)


def test_it_is_forwarded_by_its_route_once_it_is_read(key, alice, receiving):
    ForwardTarget.objects.create(workspace=alice.workspace, address="grace@example.org", confirmed_at=Now())
    make_route(alice.workspace, match="support", forward_to=["grace@example.org"])
    email = receive_unreadable()
    assert not Forward.objects.exists()
    reread(key, email)
    assert [*Forward.objects.values_list("address", "error")] == [("grace@example.org", "")]


def test_an_answer_has_one_event_of_the_sent_email(key, receiving):
    send(key, replyTracking=True)
    sent = Recipient.objects.get()
    email = receive_unreadable(to=reply_address(to_uuid(sent.id), domain="alice.example"))
    assert Event.objects.filter(kind="replied").count() == 1
    reread(key, email)
    email.refresh_from_db()
    assert (email.status, email.reply_recipient_id, len(received_events())) == ("processed", sent.id, 2)
    assert Event.objects.filter(kind="replied").count() == 1


def test_an_answer_that_is_found_by_its_header_gets_its_event(key, route):
    send(key)
    sent = Recipient.objects.get()
    email = receive_unreadable(with_field(f"In-Reply-To: <{sent.id}@{sent.email.from_domain}>"))
    assert not Event.objects.filter(kind="replied").exists()
    reread(key, email)
    email.refresh_from_db()
    assert (email.reply_recipient_id, Event.objects.filter(kind="replied").count()) == (sent.id, 1)


def test_other_workspaces_with_the_same_message_have_it_too(key, alice, bob, route):
    receive_for(make_domain(bob.workspace, "bob.example"))
    make_route(bob.workspace, domain="bob.example")
    recipients = [decide_recipient(f"a@{name}.example", sender="").recipient for name in ("alice", "bob")]
    store_message(Arrival(PLAIN, envelope_from="ada@example.com"), recipients)
    fail_to_read()
    mine, theirs = (ReceivedEmail.objects.get(workspace=one.workspace) for one in (alice, bob))
    assert key.post(f"/inbound/emails/{theirs.id}/reread").status_code == 404
    reread(key, mine)
    assert {*ReceivedEmail.objects.values_list("status", "subject")} == {("processed", "Where is my order?")}
    assert len(received_events()) == 4


@each("is_erased", [False, True])
def test_deletion_and_erasure_remove_both_events(key, route, webhook, is_erased):
    email = receive_unreadable()
    publish_committed()
    reread(key, email)
    publish_committed()
    assert WebhookDelivery.objects.count() == 2
    if is_erased:
        erase_person("support@alice.example")
    else:
        key.delete(f"/inbound/emails/{email.id}")
    assert not WebhookEvent.objects.exists()
    assert not WebhookDelivery.objects.exists()
    assert len(received_events()) == (0 if is_erased else 2)


def test_an_email_that_is_not_kept_is_deleted_after_the_deliveries_of_both_events(key, alice, receiving, webhook):
    make_route(alice.workspace, store_days=0)
    email = receive_unreadable()
    publish_committed()
    reread(key, email)
    publish_committed()
    list(delete_delivered_emails())
    assert ReceivedEmail.objects.exists()
    discard_pending(webhook)
    list(delete_delivered_emails())
    assert not ReceivedEmail.objects.exists()
    assert WebhookEvent.objects.count() == 2
    assert all('"deleted": true' in event.body for event in WebhookEvent.objects.all())


class TestCommand:
    def run(self, capsys, *arguments: str) -> str:
        call_command("reread_unreadable", *arguments)
        return capsys.readouterr().out

    def test_it_queues_every_message_that_could_not_be_read(self, key, route, capsys, monkeypatch):
        monkeypatch.setattr(rereading, "BATCH_SIZE", 2)
        good = receive(with_field("X-Good: 1"))
        for number in range(4):
            receive_unreadable(with_field(f"X-Number: {number}"))
        receive_blocked(source=with_field("X-Blocked: 1"))
        assert "5 messages could not be read." in self.run(capsys, "--dry-run")
        assert not Message.objects.filter(read_at=None).exists()
        assert "5 messages are queued to be read again" in self.run(capsys)
        assert "0 messages are queued" in self.run(capsys)
        due = [*Message.objects.filter(read_at=None).order_by("due_at").values_list("due_at", flat=True)]
        assert due[-1] - due[0] == 4 * rereading.JOINT_GAP
        Message.objects.filter(read_at=None).update(due_at=Now())
        # They are read together, beside new messages.
        assert len(ReceivedQueueWork().claim(16).jobs) == 5
        Message.objects.filter(read_at=None).update(due_at=Now())
        process_received()
        assert {*ReceivedEmail.objects.values_list("status", flat=True)} == {"processed"}
        assert len(received_events()) == 1 + 4 * 2 + 1
        assert Event.objects.filter(payload__id=good.id).count() == 1

    def test_a_workspace_and_a_time_limit_it(self, key, alice, bob, route, capsys):
        old, _new = (receive_unreadable(with_field(f"X-Number: {number}")) for number in range(2))
        Message.objects.filter(id=old.message_id).update(received_at=Now() - timedelta(days=9))
        since = f"{(old.received_at - timedelta(days=1)):%Y-%m-%dT%H:%M:%SZ}"
        assert "0 messages" in self.run(capsys, "--dry-run", "--workspace", bob.workspace.id)
        assert "2 messages" in self.run(capsys, "--dry-run", "--workspace", alice.workspace.id)
        assert "1 messages are queued" in self.run(capsys, "--since", since)
        assert Message.objects.get(read_at=None).id != old.message_id

    @each("arguments", [("--since", "yesterday"), ("--workspace", "alice")])
    def test_wrong_arguments_are_explained(self, db, arguments):
        with pytest.raises(CommandError, match=arguments[1]):
            call_command("reread_unreadable", *arguments)
