"""Expiry: after it no attempt begins, no message is completed, and each recipient fails with a cause."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from analytics.reputation.counting import ReputationCounter
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.transports.interface import LeaseLost
from core.lib.worker.leases import boot_seconds
from core.lib.worker.stages import Stage
from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.models import Usage
from emails.accept.batches import create_batch, pause_batch
from emails.models import Email, QueueEntry, Recipient
from emails.sending.emails_work import EmailQueueWork
from emails.sending.expiry import Expiry
from emails.sending.outcomes import SendResult, record_results
from emails.sending.scheduling import EXPIRE_BATCH_SIZE, fail_expired, promote_due
from emails.sending.sending_checks import pause_sending
from events.models import Event
from streams.services import create_stream, pause_stream, update_stream
from suppressions.models import Suppression
from tests.conftest import Api, field_codes, later, mail
from tests.emails.builders import (
    LATER,
    LONG_AGO,
    OK,
    PARKED,
    accept,
    change_workspace,
    claim_entries,
    counter_values,
    deliver,
    deliver_all,
    event_kinds,
    make_due,
    make_ready,
    send,
)
from tests.rows import each
from tests.sending_process import perform_jobs

pytestmark = pytest.mark.django_db
UNKNOWN = DeliveryOutcome(
    DeliveryStatus.DEFERRED, Reply(0, "The connection broke."), "outcome_unknown", may_be_delivered=True
)


def expiry_of(api: Api, email_id: str) -> timedelta | None:
    """Return the time between acceptance, or the scheduled time, and the expiry."""
    email = api.get(f"/emails/{email_id}").json()
    if email["expiresAt"] is None:
        return None
    begin = datetime.fromisoformat(email["scheduledFor"] or email["createdAt"])
    return datetime.fromisoformat(email["expiresAt"]) - begin


def expire() -> None:
    """Let all emails expire."""
    QueueEntry.objects.update(expires_at=LONG_AGO)
    Email.objects.update(expires_at=LONG_AGO)


def failed_event() -> dict:
    return Event.objects.get(kind="failed").payload


def make_template(api: Api, **fields) -> str:
    body = {"name": "Code", "subject": "Your code", "htmlContent": "<p>1</p>", **fields}
    return str(api.post("/templates", body).json()["id"])


class TestAcceptance:
    def test_an_email_without_one_has_null(self, api: Api):
        assert expiry_of(api, send(api)) is None
        assert QueueEntry.objects.get().expires_at is None

    @each("seconds", [30, 600, 604_800])
    def test_the_seconds_count_from_acceptance(self, api: Api, seconds):
        assert expiry_of(api, send(api, deliverWithin=seconds)) == timedelta(seconds=seconds)
        assert QueueEntry.objects.get().expires_at == Email.objects.get().expires_at

    def test_the_seconds_of_a_scheduled_email_count_from_its_time(self, api: Api):
        assert expiry_of(api, send(api, deliverWithin=60, scheduledFor=later())) == timedelta(minutes=1)

    def test_a_time_may_be_given_in_their_place(self, api: Api):
        expires_at = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=5)
        email_id = send(api, expiresAt=expires_at.isoformat())
        assert api.get(f"/emails/{email_id}").json()["expiresAt"] == expires_at.strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def test_the_email_comes_before_the_template_and_the_template_before_the_stream(self, api: Api, alice):
        create_stream(alice.workspace, slug="codes", name="Codes", deliver_within=300)
        template = make_template(api, deliverWithin=200)
        unlimited = make_template(api, deliverWithin=None)
        rows = [
            ({"templateId": template, "stream": "codes", "deliverWithin": 100}, 100),
            ({"templateId": template, "stream": "codes"}, 200),
            ({"templateId": template}, 200),
            ({"templateId": unlimited, "stream": "codes"}, 300),
            ({"stream": "codes"}, 300),
            ({"stream": "main"}, None),
        ]
        for fields, seconds in rows:
            expected = timedelta(seconds=seconds) if seconds else None
            assert expiry_of(api, send(api, **fields)) == expected, fields
        # Accepted emails keep theirs.
        email_id = send(api, stream="codes")
        update_stream(alice.workspace, "codes", changes={"deliver_within": 40})
        assert expiry_of(api, email_id) == timedelta(seconds=300)

    def test_a_time_comes_before_the_seconds_of_a_stream(self, api: Api, alice):
        create_stream(alice.workspace, slug="codes", name="Codes", deliver_within=30)
        email_id = send(api, stream="codes", expiresAt=later(hours=2))
        assert expiry_of(api, email_id) > timedelta(minutes=110)

    def test_the_emails_of_a_batch_have_the_same(self, api: Api):
        recipients = [{"to": "a@example.com"}, {"to": "b@example.com"}]
        body = {"from": mail()["from"], "templateId": make_template(api), "recipients": recipients}
        assert api.post("/emails/batch", {**body, "deliverWithin": 90}).status_code == 202
        assert {email.expires_at - email.created_at for email in Email.objects.all()} == {timedelta(seconds=90)}

    @each(("fields", "codes"), [
        ({"deliverWithin": 29}, {"deliverWithin": "min_value"}),
        ({"deliverWithin": 604_801}, {"deliverWithin": "max_value"}),
        ({"deliverWithin": "600"}, {"deliverWithin": "invalid"}),
        ({"expiresAt": "soon"}, {"expiresAt": "invalid"}),
        ({"expiresAt": LONG_AGO}, {"expiresAt": "in_past"}),
        ({"expiresAt": later(days=366)}, {"expiresAt": "too_far"}),
        ({"expiresAt": later(), "deliverWithin": 60}, {"expiresAt": "conflict"}),
        ({"expiresAt": later(hours=1), "scheduledFor": later(hours=2)}, {"expiresAt": "before_schedule"}),
    ])  # fmt: skip
    def test_an_invalid_expiry_is_refused(self, api: Api, fields, codes):
        assert field_codes(api.post("/emails/send", mail(**fields))) == codes

    @each("place", ["/streams", "/templates"])
    def test_the_limits_of_streams_and_templates(self, api: Api, place):
        body = {"id": "codes", "name": "Codes"} if place == "/streams" else {"name": "Codes", "subject": "s"}
        body |= {"htmlContent": "<p>"} if place == "/templates" else {}
        assert field_codes(api.post(place, {**body, "deliverWithin": 29})) == {"deliverWithin": "min_value"}
        created = api.post(place, {**body, "deliverWithin": 30}).json()
        changed = api.patch(f"{place}/{created['id']}", {"deliverWithin": None}).json()
        assert (created["deliverWithin"], changed["deliverWithin"]) == (30, None)


class TestRescheduling:
    def test_the_seconds_count_anew(self, api: Api):
        email_id = send(api, to=["a@example.com", "b@example.com"], deliverWithin=60, scheduledFor=later(hours=1))
        body = api.patch(f"/emails/{email_id}", {"scheduledFor": later(hours=5)}).json()
        expires_at = datetime.fromisoformat(body["expiresAt"])
        assert expires_at - datetime.fromisoformat(body["scheduledFor"]) == timedelta(minutes=1)
        stored = {entry.expires_at for entry in QueueEntry.objects.all()}
        assert stored == {Email.objects.get().expires_at}

    def test_an_email_that_is_sent_now_has_them_from_now_on(self, api: Api):
        email_id = send(api, deliverWithin=60, scheduledFor=later(hours=1))
        assert api.patch(f"/emails/{email_id}", {"scheduledFor": None}).status_code == 200
        assert expiry_of(api, email_id) == timedelta(minutes=1)

    def test_a_time_stays_and_ends_the_possible_schedules(self, api: Api):
        email_id = send(api, expiresAt=later(hours=3), scheduledFor=later(hours=1))
        before = Email.objects.get().expires_at
        refused = api.patch(f"/emails/{email_id}", {"scheduledFor": later(hours=4)})
        assert field_codes(refused) == {"scheduledFor": "after_expiry"}
        assert api.patch(f"/emails/{email_id}", {"scheduledFor": later(hours=2)}).status_code == 200
        assert Email.objects.get().expires_at == before

    @each("fields", [{"deliverWithin": 60}, {"expiresAt": later(hours=20)}])
    def test_a_copy_has_as_much_time_as_the_first_email(self, api: Api, fields):
        email_id = send(api, **fields)
        expire()
        Email.objects.update(expires_at=Email.objects.get().created_at + timedelta(seconds=60))
        fail_expired()
        copy = api.post(f"/emails/{email_id}/resend").json()["id"]
        assert expiry_of(api, copy) == timedelta(seconds=60)


def ready(api, workspace):
    send(api, stream="codes", deliverWithin=60)


def retried(api, workspace):
    ready(api, workspace)
    deliver(LATER)


def parked(api, workspace):
    ready(api, workspace)
    deliver_all(PARKED)


def paced(api, workspace):
    ready(api, workspace)
    QueueEntry.objects.update(stage=Stage.PACED, waits_for="receiver_pace", due_at=later())


def batch_paused(api, workspace):
    send(api, deliverWithin=60, scheduledFor=later())
    batch = create_batch(workspace, limits=NO_LIMITS)
    Email.objects.update(batch=batch)
    pause_batch(batch, limits=NO_LIMITS)


def stream_paused(api, workspace):
    ready(api, workspace)
    pause_stream(workspace, "codes", reason="Complaints.")


def held(api, workspace):
    stream_paused(api, workspace)
    assert EmailQueueWork(Refusing(), sessions=10).claim(10).jobs == []
    assert QueueEntry.objects.get().stage == Stage.HELD


def sending_paused(api, workspace):
    ready(api, workspace)
    pause_sending()


def scheduled_while_paused(api, workspace):
    send(api, deliverWithin=60, scheduledFor=later())
    pause_sending()
    make_due()


def suspended(api, workspace):
    ready(api, workspace)
    change_workspace(workspace, suspended_at=Now())


# How it comes to wait, and the cause in the event.
WAITS = [
    (ready, None),
    (retried, "retry"),
    (parked, "destination"),
    (paced, "receiver_pace"),
    (batch_paused, "batch_paused"),
    (stream_paused, "stream_paused"),
    (held, "stream_paused"),
    (sending_paused, "sending_paused"),
    (scheduled_while_paused, "sending_paused"),
    (suspended, "workspace_suspended"),
]


class Refusing:
    """A transport that must not be asked."""

    trouble = None

    async def deliver(self, message, *, lease):
        raise AssertionError

    def end_sessions(self):
        pass


class TestSweep:
    @each(("wait", "cause"), WAITS)
    def test_a_waiting_email_fails_and_says_what_it_waited_for(self, api: Api, alice, wait, cause):
        create_stream(alice.workspace, slug="codes", name="Codes")
        wait(api, alice.workspace)
        assert fail_expired() == 0
        expire()
        EmailQueueWork(Refusing(), sessions=10).claim(10)
        recipient, email = Recipient.objects.get(), Email.objects.get()
        assert (recipient.state, recipient.reason, email.status) == ("failed", "expired", "failed")
        assert email.error_message.startswith("The email expired before it was sent.")
        assert not QueueEntry.objects.exists()
        assert (failed_event()["reason"], failed_event().get("waitedFor")) == ("expired", cause)
        assert event_kinds().count("failed") == 1

    def test_it_suppresses_nothing_and_does_not_count_for_the_reputation(self, api: Api):
        send(api, deliverWithin=60)
        expire()
        fail_expired()
        counts = counter_values()
        assert counts["status.failed"] == counts["recipients.failed"] == 1
        assert not counts.keys() & {*ReputationCounter}
        assert "recipients.delayed" not in counts
        assert not Suppression.objects.exists()
        assert Usage.objects.get().used == 1

    @each("wait", [retried, parked, batch_paused, held])
    def test_an_entry_that_waited_is_not_counted_as_delayed_any_more(self, api: Api, alice, wait):
        create_stream(alice.workspace, slug="codes", name="Codes")
        wait(api, alice.workspace)
        assert counter_values()["recipients.delayed"] == 1
        expire()
        fail_expired()
        assert "recipients.delayed" not in counter_values()

    def test_a_leased_entry_is_left_to_its_worker_until_the_lease_ends(self, api: Api):
        send(api, deliverWithin=60)
        (claim,) = claim_entries()
        expire()
        assert fail_expired() == 0
        QueueEntry.objects.update(due_at=LONG_AGO)
        promote_due()
        assert fail_expired() == 1
        # The worker may have sent the message.
        assert Recipient.objects.get().reason == "outcome_unknown"
        assert record_results([SendResult(claim, OK)]) == []

    def test_a_message_that_a_host_may_have_taken_is_unknown(self, api: Api, sending):
        send(api, deliverWithin=60)
        deliver(UNKNOWN)
        expire()
        assert sending.claim(10).jobs == []
        recipient = Recipient.objects.get()
        assert (recipient.state, recipient.reason) == ("failed", "outcome_unknown")
        assert "waitedFor" not in failed_event()

    def test_each_recipient_is_judged_alone(self, api: Api):
        email_id = send(api, to=["a@example.com", "b@example.com", "c@example.com"], deliverWithin=60)
        deliver(OK)
        deliver(LATER)
        expire()
        fail_expired()
        states = sorted(Recipient.objects.values_list("state", "reason"))
        assert states == [("delivered", None), ("failed", "expired"), ("failed", "expired")]
        assert api.get(f"/emails/{email_id}").json()["status"] == "delivered"

    def test_a_scheduled_email_fails_as_a_whole(self, api: Api, alice):
        send(api, to=[f"r{n}@example.com" for n in range(5)], deliverWithin=60, scheduledFor=later())
        pause_sending()
        make_due()
        expire()
        # Its followers are ready once the first one is found.
        assert [fail_expired(), fail_expired(), fail_expired()] == [1, 4, 0]
        assert set(Recipient.objects.values_list("state", flat=True)) == {"failed"}
        assert counter_values()["recipients.failed"] == 5
        assert event_kinds().count("failed") == 5

    def test_a_cancelled_email_does_not_expire(self, api: Api):
        email_id = send(api, deliverWithin=60, scheduledFor=later())
        assert api.delete(f"/emails/{email_id}").status_code == 200
        expire()
        assert fail_expired() == 0
        assert event_kinds() == ["scheduled", "cancelled"]

    def test_more_than_a_batch_is_finished_by_the_next_claims(self, workspace, sending):
        accept(workspace, count=3, deliver_within=60)
        expire()
        assert EXPIRE_BATCH_SIZE > 3
        assert [fail_expired(), fail_expired()] == [3, 0]

    def test_test_emails_and_those_of_the_simulator_expire_too(self, api: Api):
        for address in ("delivered@simulator.example", "ada@example.com"):
            send(api, to=address, deliverWithin=60)
        Email.objects.filter(to=["ada@example.com"]).update(is_test=True)
        expire()
        assert fail_expired() == 2

    def test_emails_without_one_are_sent(self, api: Api, sending):
        send(api)
        assert fail_expired() == 0
        assert len(sending.claim(10).jobs) == 1


class Accepting:
    """A transport that accepts each message while its permit is valid."""

    trouble = None

    def __init__(self, before_dot=lambda: None):
        self.before_dot, self.taken = before_dot, 0

    async def deliver(self, message, *, lease):
        self.before_dot()
        if not lease.is_valid():
            raise LeaseLost
        self.taken += 1
        return OK

    def end_sessions(self):
        pass


class TestLastCheck:
    def test_the_permit_ends_with_the_expiry(self, api: Api, monkeypatch):
        send(api, deliverWithin=60)
        clock = [0.0]
        monkeypatch.setattr("emails.sending.expiry.boot_seconds", lambda: boot_seconds() + clock[0])
        transport = Accepting(before_dot=lambda: clock.__setitem__(0, 61.0))
        work = EmailQueueWork(transport, sessions=10)
        work.record(perform_jobs(work, work.claim(10).jobs))
        assert transport.taken == 0
        recipient = Recipient.objects.get()
        assert (recipient.state, recipient.reason) == ("failed", "expired")

    def test_it_is_valid_until_then(self, api: Api):
        send(api, deliverWithin=60)
        transport = Accepting()
        work = EmailQueueWork(transport, sessions=10)
        work.record(perform_jobs(work, work.claim(10).jobs))
        assert (transport.taken, Recipient.objects.get().state) == (1, "delivered")

    def test_an_expired_email_that_is_claimed_is_not_attempted(self, api: Api, monkeypatch):
        send(api, deliverWithin=60)
        monkeypatch.setattr("emails.sending.emails_work.fail_expired", lambda: 0)
        expire()
        assert EmailQueueWork(Refusing(), sessions=10).claim(10).jobs == []
        assert Recipient.objects.get().reason == "expired"

    def test_a_second_attempt_after_a_lost_reply_is_unknown(self, api: Api, monkeypatch):
        send(api, deliverWithin=60)
        deliver(UNKNOWN)
        make_ready()
        monkeypatch.setattr("emails.sending.emails_work.fail_expired", lambda: 0)
        expire()
        assert EmailQueueWork(Refusing(), sessions=10).claim(10).jobs == []
        assert Recipient.objects.get().reason == "outcome_unknown"

    def test_the_clock_is_read_before_the_database(self):
        assert not Expiry(boot_seconds(), None).is_over()
        assert not Expiry(boot_seconds(), 1.0).is_over()
        assert Expiry(boot_seconds() - 1.0, 1.0).is_over()
        assert Expiry(boot_seconds(), -0.001).is_over()


def test_the_sweep_is_one_statement_if_nothing_has_expired(workspace):
    accept(workspace, count=5)
    with CaptureQueriesContext(connection) as queries:
        assert fail_expired() == 0
    assert len([query for query in queries if "SAVEPOINT" not in query["sql"]]) == 1
