"""Scheduled emails: promote, reschedule, cancel. Tests move rows into the past, never the clock."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest

from core.counters import counters
from core.lib.worker.stages import Stage
from core.workspaces.models import Usage
from emails.models import Email, QueueEntry, Recipient
from emails.sending import queue
from emails.sending.scheduling import promote_due
from tests.conftest import Api, code_of, field_codes, later, mail, make_account, make_domain, make_key
from tests.emails.builders import (
    BOUNCED,
    FAILED,
    LATER,
    LONG_AGO,
    OK,
    SENT,
    claim_entries,
    counter_values,
    deliver,
    event_kinds,
    make_due,
    send,
)
from tests.rows import each
from tests.threads import own_connection

TWO = ["a@example.com", "b@example.com"]


def schedule(api: Api, **fields) -> str:
    """Send an email to three recipients, scheduled in an hour."""
    return send(api, **{"to": TWO, "bcc": ["c@example.com"], "scheduledFor": later(), **fields})


def states() -> set[str]:
    return set(Recipient.objects.values_list("state", flat=True))


@pytest.mark.django_db
class TestAcceptance:
    def test_the_response_to_a_scheduled_email_has_status_scheduled(self, api: Api):
        scheduled_for = datetime.now(UTC).replace(microsecond=123_000) + timedelta(days=2)
        response = api.post("/emails/send", mail(scheduledFor=scheduled_for.isoformat()))
        body = response.json()
        assert (response.status_code, body["status"], body.keys()) == (202, "scheduled", {"id", "status", "createdAt"})
        detail = api.get(f"/emails/{body['id']}").json()
        assert (detail["status"], detail["sentAt"]) == ("scheduled", None)
        assert detail["scheduledFor"] == scheduled_for.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        assert {recipient["status"] for recipient in detail["recipients"]} == {"scheduled"}

    def test_every_recipient_waits_and_the_email_is_counted_as_scheduled_and_has_one_event(self, api: Api):
        email_id = schedule(api)
        (event,) = api.get(f"/emails/{email_id}/events").json()["data"]
        assert (event["eventType"], event["payload"]["emailId"]) == ("scheduled", email_id)
        assert states() == {"scheduled"}
        assert set(QueueEntry.objects.values_list("stage", flat=True)) == {Stage.SCHEDULED}
        assert QueueEntry.objects.count() == 3
        assert Usage.objects.get().used == 1
        assert counter_values() == {"status.scheduled": 1, "recipients.accepted": 3, "recipients.delayed": 3}

    @each("hours", [0, 2, 5.5, -8, -12, 15.75, -15.75])
    def test_an_offset_is_applied(self, api: Api, hours):
        zone = timezone(timedelta(hours=hours))
        scheduled_for = datetime.now(zone).replace(microsecond=0) + timedelta(hours=3)
        email_id = schedule(api, scheduledFor=scheduled_for.isoformat())
        assert Email.objects.get(id=email_id).scheduled_for == scheduled_for

    @each("hours", [16, -16, 23.75])
    def test_an_offset_that_postgresql_refuses_is_invalid(self, api: Api, hours):
        scheduled_for = datetime.now(timezone(timedelta(hours=hours))) + timedelta(hours=3)
        response = api.post("/emails/send", mail(scheduledFor=scheduled_for.isoformat()))
        assert field_codes(response) == {"scheduledFor": "invalid"}

    @each("form", ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dt%H:%M:%S.000z"])
    def test_a_time_without_an_offset_is_in_utc_and_null_sends_immediately(self, api: Api, form):
        scheduled_for = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)
        email_id = schedule(api, scheduledFor=scheduled_for.strftime(form))
        assert Email.objects.get(id=email_id).scheduled_for == scheduled_for
        response = api.post("/emails/send", mail() | {"scheduledFor": None})
        assert (response.status_code, response.json()["status"]) == (202, "queued")

    def test_30_days_pass_and_a_little_more_do_not(self, api: Api):
        assert api.post("/emails/send", mail(scheduledFor=later(days=30))).status_code == 202
        response = api.post("/emails/send", mail(scheduledFor=later(days=30, seconds=30)))
        assert field_codes(response) == {"scheduledFor": "too_far"}
        assert Email.objects.count() == 1

    def test_a_minute_ahead_passes_in_a_zone_where_it_is_still_yesterday(self, api: Api):
        scheduled_for = datetime.now(timezone(timedelta(hours=-11))) + timedelta(seconds=60)
        assert api.post("/emails/send", mail(scheduledFor=scheduled_for.isoformat())).status_code == 202

    @each("scheduled_for", [
        "", "tomorrow", "2026-11-21", "21.11.2026 06:20", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
        "2026-11-21T24:01:00Z", "2026-11-21T06:20:00+2", "2026-11-21T06:20:00+25:00", "2026-11-21T06:20:00 CET",
        "2026-W47-6T06:20:00Z", "2026-11-21T06:20:00Z\n", "٢٠٢٦-11-21T06:20:00Z", "+002026-11-21T06:20:00Z",
        1_800_000_000, True, [], {},
    ])  # fmt: skip
    def test_an_invalid_time_is_refused(self, api: Api, scheduled_for):
        response = api.post("/emails/send", mail(scheduledFor=scheduled_for))
        assert field_codes(response) in ({"scheduledFor": "invalid"}, {"scheduledFor": "blank"})
        assert not Email.objects.exists()

    @each(("scheduled_for", "code"), [
        ("0001-01-01T00:00:00+14:00", "in_past"),
        ("0001-01-01T00:00:00-14:00", "in_past"),
        ("9999-12-31T23:59:59-14:00", "too_far"),
        ("9999-12-31T23:59:59.999999999+14:00", "too_far"),
    ])  # fmt: skip
    def test_a_time_in_the_past_and_the_limits_of_the_calendar_are_refused(self, api: Api, scheduled_for, code):
        assert field_codes(api.post("/emails/send", mail(scheduledFor=scheduled_for))) == {"scheduledFor": code}
        for seconds in (0, 1, 86_400, 10**9):
            response = api.post("/emails/send", mail(scheduledFor=later(seconds=-seconds)))
            assert field_codes(response) == {"scheduledFor": "in_past"}, seconds
        assert not Email.objects.exists()


@pytest.mark.django_db
class TestPromotion:
    def test_the_email_and_all_its_recipients_are_queued_together_at_their_time_and_once(self, api: Api):
        email_id = schedule(api)
        promote_due()
        assert claim_entries() == []
        assert states() == {"scheduled"}
        make_due()
        promote_due()
        promote_due()
        assert Email.objects.get().status == "queued"
        assert states() == {"queued"}
        assert set(QueueEntry.objects.values_list("stage", flat=True)) == {Stage.READY}
        assert event_kinds(email_id) == ["scheduled", "queued"]
        assert counter_values() == {"status.queued": 1, "recipients.accepted": 3}
        assert {email_claim.recipient_id for email_claim in claim_entries()} == set(
            Recipient.objects.values_list("id", flat=True)
        )

    def test_only_due_emails_are_promoted(self, api: Api):
        first, second = schedule(api), schedule(api)
        make_due(id=first)
        promote_due()
        assert {email_claim.recipient_id for email_claim in claim_entries()} == set(
            Recipient.objects.filter(email=first).values_list("id", flat=True)
        )
        assert Email.objects.get(id=second).status == "scheduled"
        assert event_kinds(second) == ["scheduled"]

    def test_the_age_counts_from_the_scheduled_time(self, api: Api):
        schedule(api)
        just_now = datetime.now(UTC) - timedelta(minutes=1)
        QueueEntry.objects.update(since=LONG_AGO)
        QueueEntry.objects.filter(recipient__position=0).update(due_at=just_now, since=just_now)
        promote_due()
        assert all(email_claim.since >= just_now for email_claim in claim_entries())

    def test_a_scheduled_batch_is_promoted(self, api: Api):
        template = {"name": "t", "subject": "s", "htmlContent": "<p>Hi</p>"}
        template_id = api.post("/templates", template).json()["id"]
        recipients = [{"to": address} for address in TWO]
        body = {"from": "x@alice.example", "templateId": template_id, "recipients": recipients}
        assert api.post("/emails/batch", body | {"scheduledFor": later()}).json()["queued"] == 2
        assert set(Email.objects.values_list("status", flat=True)) == {"scheduled"}
        assert claim_entries() == []
        make_due()
        promote_due()
        assert len(claim_entries()) == 2


@pytest.mark.django_db
class TestRescheduling:
    def test_a_scheduled_email_is_rescheduled(self, api: Api):
        email_id = schedule(api)
        scheduled_for = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
        response = api.patch(f"/emails/{email_id}", {"scheduledFor": scheduled_for.isoformat()})
        body = response.json()
        assert (response.status_code, body["id"], body["status"]) == (200, email_id, "scheduled")
        assert datetime.fromisoformat(body["scheduledFor"]) == scheduled_for
        assert Email.objects.get().scheduled_for == scheduled_for
        assert QueueEntry.objects.get(recipient__position=0).due_at == scheduled_for
        assert set(event_kinds(email_id)) == {"scheduled"}
        assert Usage.objects.get().used == 1

    def test_a_rescheduled_email_is_sent_only_at_its_new_time(self, api: Api):
        email_id = schedule(api)
        make_due()
        assert api.patch(f"/emails/{email_id}", {"scheduledFor": later(days=1)}).status_code == 200
        promote_due()
        assert claim_entries() == []
        make_due()
        promote_due()
        assert len(claim_entries()) == 3

    def test_rescheduling_to_null_sends_immediately(self, api: Api):
        email_id = schedule(api)
        response = api.patch(f"/emails/{email_id}", {"scheduledFor": None})
        assert (response.status_code, response.json()["status"]) == (200, "queued")
        assert api.get(f"/emails/{email_id}").json()["status"] == "queued"
        assert states() == {"queued"}
        assert event_kinds(email_id) == ["scheduled", "queued"]
        assert counter_values() == {"status.queued": 1, "recipients.accepted": 3}
        assert len(claim_entries()) == 3

    @each("scheduled_for", [None, "later"])
    @each("end", ["queued", "promoted", "sent now", "cancelled"])
    def test_an_email_no_longer_scheduled_is_not_rescheduled(self, api: Api, end, scheduled_for):
        email_id = schedule(api) if end != "queued" else send(api)
        if end == "promoted":
            make_due()
            promote_due()
        if end == "sent now":
            api.patch(f"/emails/{email_id}", {"scheduledFor": None})
        if end == "cancelled":
            api.delete(f"/emails/{email_id}")

        def rows() -> tuple:
            return [*Email.objects.values()], [*QueueEntry.objects.order_by("pk").values()], event_kinds(email_id)

        before = rows()
        response = api.patch(f"/emails/{email_id}", {"scheduledFor": scheduled_for and later()})
        assert code_of(response) == (409, "email_not_scheduled")
        assert rows() == before

    @each(("body", "field", "code"), [
        ({}, "scheduledFor", "required"),
        ({"scheduledFor": "soon"}, "scheduledFor", "invalid"),
        ({"scheduledFor": LONG_AGO}, "scheduledFor", "in_past"),
        ({"scheduledFor": "2999-01-01T00:00:00Z"}, "scheduledFor", "too_far"),
        ({"scheduledFor": None, "subject": "x"}, "subject", "unknown_field"),
    ])  # fmt: skip
    def test_an_invalid_reschedule_changes_nothing(self, api: Api, body, field, code):
        email_id = schedule(api)
        before = Email.objects.values().get()
        assert field_codes(api.patch(f"/emails/{email_id}", body)) == {field: code}
        assert Email.objects.values().get() == before


@pytest.mark.django_db
class TestCancelling:
    def test_a_cancelled_email_is_never_claimed_and_has_an_event_and_counter_changes(self, api: Api):
        email_id = schedule(api)
        response = api.delete(f"/emails/{email_id}")
        assert (response.status_code, response.json()) == (200, {"id": email_id, "status": "cancelled"})
        assert api.get(f"/emails/{email_id}").json()["status"] == "cancelled"
        assert states() == {"cancelled"}
        assert event_kinds(email_id) == ["scheduled", "cancelled"]
        assert not QueueEntry.objects.exists()
        make_due()
        promote_due()
        assert claim_entries() == []
        *_, event = api.get(f"/emails/{email_id}/events").json()["data"]
        assert (event["eventType"], event["payload"]) == ("cancelled", {"emailId": email_id})
        assert counter_values() == {"status.cancelled": 1, "recipients.accepted": 3, "recipients.cancelled": 3}
        assert counters.total(Email.objects.get().workspace_id, keys=["status.scheduled"]) == 0

    def test_cancelling_returns_the_quota_of_the_month_and_again_is_200_and_changes_nothing(self, api: Api):
        email_id = schedule(api)
        schedule(api)
        first = api.delete(f"/emails/{email_id}")
        again = api.delete(f"/emails/{email_id}")
        assert (again.status_code, again.json()) == (200, first.json())
        assert event_kinds(email_id) == ["scheduled", "cancelled"]
        assert Usage.objects.get().used == 1
        assert api.get("/me").json()["quota"]["used"] == 1

    def test_a_due_email_can_be_cancelled_until_it_is_promoted(self, api: Api):
        email_id = schedule(api)
        make_due()
        assert api.delete(f"/emails/{email_id}").status_code == 200
        promote_due()
        assert claim_entries() == []

    def test_after_the_month_the_quota_is_not_returned(self, api: Api):
        email_id = schedule(api)
        Email.objects.update(created_at=datetime.now(UTC).replace(day=1) - timedelta(days=1))
        assert api.delete(f"/emails/{email_id}").status_code == 200
        assert Usage.objects.get().used == 1

    def test_a_queued_or_promoted_email_is_not_cancellable(self, api: Api):
        email_id = schedule(api)
        make_due()
        promote_due()
        for queued in (email_id, send(api)):
            assert code_of(api.delete(f"/emails/{queued}")) == (409, "email_not_cancellable")
        assert states() == {"queued"}
        assert len(claim_entries()) == 3 + 1

    @each(("outcomes", "code"), [
        ([OK, OK, OK], "email_already_sent"),
        ([SENT, SENT, SENT], "email_already_sent"),
        ([SENT, LATER, BOUNCED], "email_already_sent"),
        ([BOUNCED, BOUNCED, BOUNCED], "email_not_cancellable"),
        ([FAILED, FAILED, FAILED], "email_not_cancellable"),
        ([LATER, LATER, LATER], "email_not_cancellable"),
        ([LATER, FAILED, BOUNCED], "email_not_cancellable"),
    ])  # fmt: skip
    def test_a_sent_email_is_already_sent_and_others_are_not_cancellable(self, api: Api, outcomes, code):
        email_id = schedule(api)
        api.patch(f"/emails/{email_id}", {"scheduledFor": None})
        deliver(*outcomes)
        before = event_kinds(email_id)
        assert code_of(api.delete(f"/emails/{email_id}")) == (409, code)
        assert event_kinds(email_id) == before
        assert Usage.objects.get().used == 1

    def test_an_opened_email_is_already_sent(self, api: Api):
        email_id = send(api)
        deliver(SENT)
        Email.objects.update(status="opened")
        assert code_of(api.delete(f"/emails/{email_id}")) == (409, "email_already_sent")


@pytest.mark.django_db(transaction=True)
class TestConcurrency:
    """Cancel and reschedule while workers promote and claim, each on a separate connection."""

    EMAILS = 30

    @pytest.fixture
    def key(self, monkeypatch) -> str:
        # Small batches, so that workers and callers collide often.
        monkeypatch.setattr(queue, "PROMOTE_BATCH_SIZE", 1)
        workspace = make_account("alice").workspace
        make_domain(workspace, "alice.example")
        return make_key(workspace)

    @pytest.fixture
    def due_ids(self, key) -> list[str]:
        """Create due scheduled emails with three recipients each; return their ids."""
        ids = [schedule(Api(key)) for _ in range(self.EMAILS)]
        make_due()
        return ids

    def run_concurrently(self, ids: list[str], call, *, callers: int) -> tuple[dict[str, list], set[str]]:
        """Run call for every email in several callers while workers promote and claim.

        Returns the responses by email, and the ids of the claimed recipients.
        """
        start, answers, claimed = threading.Barrier(callers + 2), {email_id: [] for email_id in ids}, set()
        done = threading.Event()

        def caller(order: list[str]) -> None:
            start.wait()
            for email_id in order:
                answers[email_id].append(call(email_id))

        def worker() -> None:
            start.wait()
            due = QueueEntry.objects.filter(stage=Stage.SCHEDULED, due_at__lt=datetime.now(UTC))
            while not done.is_set() or due.exists():
                promote_due()
                claimed.update(email_claim.recipient_id for email_claim in claim_entries(4))

        with ThreadPoolExecutor(callers + 2) as pool:
            orders = [random.sample(ids, len(ids)) for _ in range(callers)]
            called = [pool.submit(own_connection(caller), order) for order in orders]
            worked = [pool.submit(own_connection(worker)) for _ in range(2)]
            try:
                for future in called:
                    future.result(timeout=60)
            finally:
                done.set()
            for future in worked:
                future.result(timeout=60)
        claimed.update(email_claim.recipient_id for email_claim in claim_entries())
        return answers, claimed

    def test_an_email_is_cancelled_as_a_whole_or_sent_as_a_whole(self, key, due_ids):
        answers, claimed = self.run_concurrently(
            due_ids, lambda email_id: Api(key).delete(f"/emails/{email_id}"), callers=3
        )
        cancelled = 0
        for email in Email.objects.prefetch_related("recipients"):
            recipients = {recipient.id for recipient in email.recipients.all()}
            codes = {answer.status_code for answer in answers[email.id]}
            assert {recipient.state for recipient in email.recipients.all()} == {email.status}
            if email.status == "cancelled":
                cancelled += 1
                assert (codes, recipients & claimed) == ({200}, set())
                assert event_kinds(email.id) == ["scheduled", "cancelled"]
            else:
                assert (email.status, codes, recipients <= claimed) == ("queued", {409}, True)
                assert event_kinds(email.id) == ["scheduled", "queued"]
        assert Usage.objects.get().used == self.EMAILS - cancelled
        expected = {"status.cancelled": cancelled, "status.queued": self.EMAILS - cancelled}
        expected |= {"recipients.accepted": 3 * self.EMAILS, "recipients.cancelled": 3 * cancelled}
        assert counter_values() == {name: count for name, count in expected.items() if count}

    def test_an_email_is_rescheduled_as_a_whole_or_sent_as_a_whole(self, key, due_ids):
        scheduled_for = later(days=1)
        answers, claimed = self.run_concurrently(
            due_ids, lambda email_id: Api(key).patch(f"/emails/{email_id}", {"scheduledFor": scheduled_for}), callers=2
        )
        for email in Email.objects.prefetch_related("recipients"):
            recipients = {recipient.id for recipient in email.recipients.all()}
            codes = {answer.status_code for answer in answers[email.id]}
            assert {recipient.state for recipient in email.recipients.all()} == {email.status}
            if email.status == "scheduled":
                assert (codes, recipients & claimed) == ({200}, set())
            else:
                assert (email.status, codes, recipients <= claimed) == ("queued", {409}, True)
