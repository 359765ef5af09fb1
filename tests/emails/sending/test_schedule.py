"""Scheduled emails: when they go, how they are moved and cancelled; rows are moved into the past, never the clock."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from django.db import connection

from analytics import counters
from analytics.models import Tally
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from emails.models import Email, Event, Pending, Recipient
from emails.sending import queue
from emails.sending.outcomes import Result, record
from emails.sending.scheduling import promote_due
from tests.conftest import Api, mail, make_account, make_domain, make_key
from workspaces.api import authentication
from workspaces.models import Usage, Workspace

START = UUID(int=0)
TWO = ["a@example.com", "b@example.com"]
PAST = "2020-01-01T00:00:00Z"


def later(**ahead: float) -> str:
    return (datetime.now(UTC) + timedelta(**(ahead or {"hours": 1}))).isoformat()


def scheduled_mail(**fields) -> dict:
    """An email with three recipients, to go in an hour."""
    return mail(**{"to": TWO, "bcc": ["c@example.com"], "scheduledFor": later(), **fields})


def schedule(api: Api, **fields) -> str:
    response = api.post("/emails/send", scheduled_mail(**fields))
    assert response.status_code == 202, response.content
    return response.json()["id"]


def claim() -> list:
    return queue.claim(1000, after=START)


def let_time_come(**emails) -> None:
    """Move what is scheduled into the past: the row of its first recipient says when."""
    leads = Pending.objects.filter(recipient__position=0, stage=Pending.Stage.SCHEDULED)
    leads.filter(**{f"recipient__email__{name}": value for name, value in emails.items()}).update(due_at=PAST)


def states() -> set[str]:
    return set(Recipient.objects.values_list("state", flat=True))


def kinds(email_id: str) -> list[str]:
    return list(Event.objects.filter(email=email_id).values_list("kind", flat=True))


def counter_values() -> dict[str, int]:
    while counters.fold():
        pass
    return {key: count for key, count in Tally.objects.values_list("key", "count") if count}


def code_of(response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def field_code(response) -> tuple[int, str, str]:
    (error,) = response.json()["errors"]
    return response.status_code, error["field"], error["code"]


@pytest.mark.django_db
class TestAccepting:
    def test_an_email_for_later_is_answered_as_scheduled(self, api: Api):
        moment = datetime.now(UTC).replace(microsecond=123_000) + timedelta(days=2)
        response = api.post("/emails/send", mail(scheduledFor=moment.isoformat()))
        body = response.json()
        assert (response.status_code, body["status"], body.keys()) == (202, "scheduled", {"id", "status", "createdAt"})
        detail = api.get(f"/emails/{body['id']}").json()
        assert (detail["status"], detail["sentAt"]) == ("scheduled", None)
        assert detail["scheduledFor"] == moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        assert {recipient["status"] for recipient in detail["recipients"]} == {"scheduled"}

    def test_its_first_event_is_scheduled_and_the_only_one(self, api: Api):
        email_id = schedule(api)
        (event,) = api.get(f"/emails/{email_id}/events").json()["data"]
        assert (event["eventType"], event["payload"]["emailId"]) == ("scheduled", email_id)

    def test_every_recipient_waits_and_the_email_is_counted_as_scheduled(self, api: Api):
        schedule(api)
        assert states() == {"scheduled"}
        assert set(Pending.objects.values_list("stage", flat=True)) == {Pending.Stage.SCHEDULED}
        assert Pending.objects.count() == 3
        assert Usage.objects.get().used == 1
        assert counter_values() == {"status.scheduled": 1, "recipients.accepted": 3, "recipients.delayed": 3}

    @pytest.mark.parametrize("hours", [0, 2, 5.5, -8, -12])
    def test_an_offset_counts(self, api: Api, hours):
        zone = timezone(timedelta(hours=hours))
        moment = datetime.now(zone).replace(microsecond=0) + timedelta(hours=3)
        email_id = schedule(api, scheduledFor=moment.isoformat())
        assert Email.objects.get(id=email_id).scheduled_for == moment

    @pytest.mark.parametrize("form", ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dt%H:%M:%S.000z"])
    def test_a_moment_without_an_offset_is_in_utc(self, api: Api, form):
        moment = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)
        email_id = schedule(api, scheduledFor=moment.strftime(form))
        assert Email.objects.get(id=email_id).scheduled_for == moment

    def test_null_is_at_once(self, api: Api):
        response = api.post("/emails/send", mail() | {"scheduledFor": None})
        assert (response.status_code, response.json()["status"]) == (202, "queued")

    def test_30_days_pass_and_a_little_more_do_not(self, api: Api):
        assert api.post("/emails/send", mail(scheduledFor=later(days=30))).status_code == 202
        response = api.post("/emails/send", mail(scheduledFor=later(days=30, seconds=30)))
        assert field_code(response) == (422, "scheduledFor", "too_far")
        assert Email.objects.count() == 1

    @pytest.mark.parametrize("seconds", [0, 1, 86_400, 10**9])
    def test_what_has_passed_is_refused(self, api: Api, seconds):
        response = api.post("/emails/send", mail(scheduledFor=later(seconds=-seconds)))
        assert field_code(response) == (422, "scheduledFor", "in_past")
        assert not Email.objects.exists()

    def test_a_minute_ahead_passes_in_a_zone_where_it_is_still_yesterday(self, api: Api):
        moment = datetime.now(timezone(timedelta(hours=-11))) + timedelta(seconds=60)
        assert api.post("/emails/send", mail(scheduledFor=moment.isoformat())).status_code == 202

    @pytest.mark.parametrize(
        "moment",
        [
            "",
            "tomorrow",
            "2026-11-21",
            "21.11.2026 06:20",
            "2026-13-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-11-21T24:01:00Z",
            "2026-11-21T06:20:00+2",
            "2026-11-21T06:20:00+25:00",
            "2026-11-21T06:20:00 CET",
            "2026-W47-6T06:20:00Z",
            "2026-11-21T06:20:00Z\n",
            "٢٠٢٦-11-21T06:20:00Z",
            "+002026-11-21T06:20:00Z",
            1_800_000_000,
            True,
            [],
            {},
        ],
    )
    def test_what_is_no_moment_is_refused(self, api: Api, moment):
        response = api.post("/emails/send", mail(scheduledFor=moment))
        status, field, code = field_code(response)
        assert (status, field) == (422, "scheduledFor")
        assert code in {"invalid", "blank"}
        assert not Email.objects.exists()

    @pytest.mark.parametrize(
        ("moment", "code"),
        [
            ("0001-01-01T00:00:00+14:00", "in_past"),
            ("0001-01-01T00:00:00-14:00", "in_past"),
            ("9999-12-31T23:59:59-14:00", "too_far"),
            ("9999-12-31T23:59:59.999999999+14:00", "too_far"),
        ],
    )
    def test_the_ends_of_the_calendar_are_refused_like_any_other_moment(self, api: Api, moment, code):
        assert field_code(api.post("/emails/send", mail(scheduledFor=moment))) == (422, "scheduledFor", code)


@pytest.mark.django_db
class TestWhenItsTimeComes:
    def test_nothing_is_claimed_before_its_time(self, api: Api):
        schedule(api)
        promote_due()
        assert claim() == []
        assert states() == {"scheduled"}

    def test_the_email_and_all_its_recipients_are_queued_at_once(self, api: Api):
        email_id = schedule(api)
        let_time_come()
        promote_due()
        assert Email.objects.get().status == "queued"
        assert states() == {"queued"}
        assert set(Pending.objects.values_list("stage", flat=True)) == {Pending.Stage.READY}
        assert kinds(email_id) == ["scheduled", "queued"]
        assert counter_values() == {"status.queued": 1, "recipients.accepted": 3}
        assert {held.recipient_id for held in claim()} == set(Recipient.objects.values_list("id", flat=True))

    def test_only_what_is_due_moves(self, api: Api):
        first, second = schedule(api), schedule(api)
        let_time_come(id=first)
        promote_due()
        assert {held.recipient_id for held in claim()} == set(
            Recipient.objects.filter(email=first).values_list("id", flat=True)
        )
        assert Email.objects.get(id=second).status == "scheduled"
        assert kinds(second) == ["scheduled"]

    def test_promoting_again_changes_nothing(self, api: Api):
        email_id = schedule(api)
        let_time_come()
        promote_due()
        promote_due()
        assert kinds(email_id) == ["scheduled", "queued"]
        assert len(claim()) == 3

    def test_its_age_counts_from_its_time_and_not_from_its_acceptance(self, api: Api):
        schedule(api)
        just_now = datetime.now(UTC) - timedelta(minutes=1)
        Pending.objects.update(since=PAST)
        Pending.objects.filter(recipient__position=0).update(due_at=just_now, since=just_now)
        promote_due()
        assert all(held.since >= just_now for held in claim())

    def test_a_batch_for_later_moves_as_well(self, api: Api):
        template = {"name": "t", "subject": "s", "htmlContent": "<p>Hi</p>"}
        template_id = api.post("/templates", template).json()["id"]
        recipients = [{"to": address} for address in TWO]
        body = {"from": "x@alice.example", "templateId": template_id, "recipients": recipients}
        assert api.post("/emails/batch", body | {"scheduledFor": later()}).json()["queued"] == 2
        assert set(Email.objects.values_list("status", flat=True)) == {"scheduled"}
        assert claim() == []
        let_time_come()
        promote_due()
        assert len(claim()) == 2


@pytest.mark.django_db
class TestMoving:
    def test_a_scheduled_email_is_moved(self, api: Api):
        email_id = schedule(api)
        moment = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
        response = api.patch(f"/emails/{email_id}", {"scheduledFor": moment.isoformat()})
        body = response.json()
        assert (response.status_code, body["id"], body["status"]) == (200, email_id, "scheduled")
        assert datetime.fromisoformat(body["scheduledFor"]) == moment
        assert Email.objects.get().scheduled_for == moment
        assert Pending.objects.get(recipient__position=0).due_at == moment
        assert set(kinds(email_id)) == {"scheduled"}
        assert Usage.objects.get().used == 1

    def test_a_moved_email_goes_at_its_new_time_only(self, api: Api):
        email_id = schedule(api)
        let_time_come()
        assert api.patch(f"/emails/{email_id}", {"scheduledFor": later(days=1)}).status_code == 200
        promote_due()
        assert claim() == []
        let_time_come()
        promote_due()
        assert len(claim()) == 3

    def test_null_sends_now(self, api: Api):
        email_id = schedule(api)
        response = api.patch(f"/emails/{email_id}", {"scheduledFor": None})
        assert (response.status_code, response.json()["status"]) == (200, "queued")
        assert api.get(f"/emails/{email_id}").json()["status"] == "queued"
        assert states() == {"queued"}
        assert kinds(email_id) == ["scheduled", "queued"]
        assert counter_values() == {"status.queued": 1, "recipients.accepted": 3}
        assert len(claim()) == 3

    @pytest.mark.parametrize("moment", [None, "later"])
    @pytest.mark.parametrize("end", ["queued", "promoted", "sent now", "cancelled"])
    def test_what_is_not_scheduled_any_more_is_not_moved(self, api: Api, end, moment):
        email_id = schedule(api) if end != "queued" else api.post("/emails/send", mail()).json()["id"]
        if end == "promoted":
            let_time_come()
            promote_due()
        if end == "sent now":
            api.patch(f"/emails/{email_id}", {"scheduledFor": None})
        if end == "cancelled":
            api.delete(f"/emails/{email_id}")
        before = list(Email.objects.values()), list(Pending.objects.order_by("pk").values()), kinds(email_id)
        response = api.patch(f"/emails/{email_id}", {"scheduledFor": moment and later()})
        assert code_of(response) == (409, "email_not_scheduled")
        assert before == (list(Email.objects.values()), list(Pending.objects.order_by("pk").values()), kinds(email_id))

    @pytest.mark.parametrize(
        ("body", "field", "code"),
        [
            ({}, "scheduledFor", "required"),
            ({"scheduledFor": "soon"}, "scheduledFor", "invalid"),
            ({"scheduledFor": PAST}, "scheduledFor", "in_past"),
            ({"scheduledFor": "2999-01-01T00:00:00Z"}, "scheduledFor", "too_far"),
            ({"scheduledFor": None, "subject": "x"}, "subject", "unknown_field"),
        ],
    )
    def test_a_bad_move_changes_nothing(self, api: Api, body, field, code):
        email_id = schedule(api)
        before = Email.objects.values().get()
        assert field_code(api.patch(f"/emails/{email_id}", body)) == (422, field, code)
        assert Email.objects.values().get() == before

    def test_another_workspaces_email_is_not_moved(self, api: Api, bobs_api: Api):
        email_id = schedule(api)
        foreign = bobs_api.patch(f"/emails/{email_id}", {"scheduledFor": None})
        unknown = bobs_api.patch(f"/emails/{'0' * 22}", {"scheduledFor": None})
        assert code_of(foreign) == code_of(unknown) == (404, "not_found")
        assert {**foreign.json(), "requestId": ""} == {**unknown.json(), "requestId": ""}
        assert Email.objects.get().status == "scheduled"


@pytest.mark.django_db
class TestCancelling:
    def test_a_cancelled_email_is_never_claimed(self, api: Api):
        email_id = schedule(api)
        response = api.delete(f"/emails/{email_id}")
        assert (response.status_code, response.json()) == (200, {"id": email_id, "status": "cancelled"})
        assert api.get(f"/emails/{email_id}").json()["status"] == "cancelled"
        assert states() == {"cancelled"}
        assert kinds(email_id) == ["scheduled", "cancelled"]
        assert not Pending.objects.exists()
        let_time_come()
        promote_due()
        assert claim() == []

    def test_the_event_and_the_counters_tell_it(self, api: Api):
        email_id = schedule(api)
        api.delete(f"/emails/{email_id}")
        *_, event = api.get(f"/emails/{email_id}/events").json()["data"]
        assert (event["eventType"], event["payload"]) == ("cancelled", {"emailId": email_id})
        assert counter_values() == {"status.cancelled": 1, "recipients.accepted": 3, "recipients.cancelled": 3}
        assert counters.total(Email.objects.get().workspace_id, keys=["status.scheduled"]) == 0

    def test_cancelling_again_is_200_and_changes_nothing(self, api: Api):
        email_id = schedule(api)
        schedule(api)
        first = api.delete(f"/emails/{email_id}")
        again = api.delete(f"/emails/{email_id}")
        assert (again.status_code, again.json()) == (200, first.json())
        assert kinds(email_id) == ["scheduled", "cancelled"]
        assert Usage.objects.get().used == 1

    def test_what_was_due_but_not_moved_yet_can_still_be_cancelled(self, api: Api):
        email_id = schedule(api)
        let_time_come()
        assert api.delete(f"/emails/{email_id}").status_code == 200
        promote_due()
        assert claim() == []

    def test_within_the_month_the_quota_is_given_back(self, api: Api):
        email_id = schedule(api)
        schedule(api)
        api.delete(f"/emails/{email_id}")
        assert Usage.objects.get().used == 1
        assert api.get("/me").json()["quota"]["used"] == 1

    def test_after_the_month_the_quota_is_not_given_back(self, api: Api):
        email_id = schedule(api)
        Email.objects.update(created_at=datetime.now(UTC).replace(day=1) - timedelta(days=1))
        assert api.delete(f"/emails/{email_id}").status_code == 200
        assert Usage.objects.get().used == 1

    def test_a_recipient_that_cost_a_unit_gives_it_back(self, api: Api, settings):
        settings.QUOTA_UNIT = "recipient"
        email_id = schedule(api)
        assert Usage.objects.get().used == 3
        api.delete(f"/emails/{email_id}")
        assert Usage.objects.get().used == 0

    def test_a_full_quota_has_room_again(self, api: Api, alice):
        email_id = schedule(api)
        Workspace.objects.filter(id=alice.workspace.id).update(plan="free")
        authentication.cache.clear()
        Usage.objects.update(used=500)
        assert code_of(api.post("/emails/send", mail())) == (429, "quota_exceeded")
        api.delete(f"/emails/{email_id}")
        assert api.post("/emails/send", mail()).status_code == 202

    def test_what_is_queued_is_not_cancellable(self, api: Api):
        email_id = api.post("/emails/send", mail()).json()["id"]
        assert code_of(api.delete(f"/emails/{email_id}")) == (409, "email_not_cancellable")
        assert len(claim()) == 1

    def test_once_its_time_has_come_an_email_is_not_cancellable(self, api: Api):
        email_id = schedule(api)
        let_time_come()
        promote_due()
        assert code_of(api.delete(f"/emails/{email_id}")) == (409, "email_not_cancellable")
        assert states() == {"queued"}

    @pytest.mark.parametrize(
        ("verdicts", "code"),
        [
            ([DeliveryStatus.DELIVERED] * 3, "email_already_sent"),
            ([DeliveryStatus.SENT] * 3, "email_already_sent"),
            ([DeliveryStatus.SENT, DeliveryStatus.DEFERRED, DeliveryStatus.BOUNCED], "email_already_sent"),
            ([DeliveryStatus.BOUNCED] * 3, "email_not_cancellable"),
            ([DeliveryStatus.FAILED] * 3, "email_not_cancellable"),
            ([DeliveryStatus.DEFERRED] * 3, "email_not_cancellable"),
            ([DeliveryStatus.DEFERRED, DeliveryStatus.FAILED, DeliveryStatus.BOUNCED], "email_not_cancellable"),
        ],
    )
    def test_what_was_handed_over_is_already_sent_and_the_rest_not_cancellable(self, api: Api, verdicts, code):
        email_id = schedule(api)
        api.patch(f"/emails/{email_id}", {"scheduledFor": None})
        reply = Reply(250, "as it is")
        outcomes = [
            DeliveryOutcome(verdict, reply, "" if verdict.value in {"sent", "delivered"} else "r")
            for verdict in verdicts
        ]
        record([Result(held, outcome) for held, outcome in zip(claim(), outcomes, strict=True)])
        before = kinds(email_id)
        assert code_of(api.delete(f"/emails/{email_id}")) == (409, code)
        assert kinds(email_id) == before
        assert Usage.objects.get().used == 1

    def test_an_opened_email_is_already_sent(self, api: Api):
        email_id = api.post("/emails/send", mail()).json()["id"]
        record([Result(held, DeliveryOutcome(DeliveryStatus.SENT, Reply(250, "ok"))) for held in claim()])
        Email.objects.update(status="opened")
        assert code_of(api.delete(f"/emails/{email_id}")) == (409, "email_already_sent")

    def test_another_workspaces_email_is_not_cancelled(self, api: Api, bobs_api: Api):
        email_id = schedule(api)
        foreign, unknown = bobs_api.delete(f"/emails/{email_id}"), bobs_api.delete(f"/emails/{'0' * 22}")
        assert code_of(foreign) == (404, "not_found")
        assert {**foreign.json(), "requestId": ""} == {**unknown.json(), "requestId": ""}
        assert Email.objects.get().status == "scheduled"


@pytest.mark.django_db(transaction=True)
class TestAtTheSameMoment:
    """Cancel and move against the workers, each over a connection of its own."""

    EMAILS = 30

    @pytest.fixture
    def key(self, monkeypatch) -> str:
        # Few at a time, so that the workers and the callers meet often.
        monkeypatch.setattr(queue, "PROMOTE_AT_ONCE", 1)
        workspace = make_account("alice").workspace
        make_domain(workspace, "alice.example")
        return make_key(workspace)

    @pytest.fixture
    def due(self, key) -> list[str]:
        """Scheduled emails with three recipients each, whose time has come."""
        ids = [schedule(Api(key)) for _ in range(self.EMAILS)]
        let_time_come()
        return ids

    def meet(self, ids: list[str], call, *, callers: int) -> tuple[dict[str, list], set[str]]:
        """Let callers call for every email while workers promote and claim.

        Returns the answers by email, and the emails' recipients that were claimed.
        """
        start, answers, claimed = threading.Barrier(callers + 2), {email_id: [] for email_id in ids}, set()
        done = threading.Event()

        def caller(order: list[str]) -> None:
            start.wait()
            for email_id in order:
                answers[email_id].append(call(email_id))

        def worker(_) -> None:
            start.wait()
            while not done.is_set() or Pending.objects.filter(stage=3, due_at__lt=datetime.now(UTC)).exists():
                promote_due()
                claimed.update(held.recipient_id for held in queue.claim(4, after=START))

        def own_connection(act):
            def run(argument):
                try:
                    act(argument)
                finally:
                    connection.close()

            return run

        with ThreadPoolExecutor(callers + 2) as pool:
            orders = [random.sample(ids, len(ids)) for _ in range(callers)]
            called = [pool.submit(own_connection(caller), order) for order in orders]
            worked = [pool.submit(own_connection(worker), None) for _ in range(2)]
            try:
                for future in called:
                    future.result(timeout=60)
            finally:
                done.set()
            for future in worked:
                future.result(timeout=60)
        claimed.update(held.recipient_id for held in claim())
        return answers, claimed

    def test_an_email_is_cancelled_as_a_whole_or_sent_as_a_whole(self, key, due):
        answers, claimed = self.meet(due, lambda email_id: Api(key).delete(f"/emails/{email_id}"), callers=3)
        cancelled = 0
        for email in Email.objects.prefetch_related("recipients"):
            recipients = {recipient.id for recipient in email.recipients.all()}
            codes = {answer.status_code for answer in answers[email.id]}
            assert {recipient.state for recipient in email.recipients.all()} == {email.status}
            if email.status == "cancelled":
                cancelled += 1
                assert (codes, recipients & claimed) == ({200}, set())
                assert kinds(email.id) == ["scheduled", "cancelled"]
            else:
                assert (email.status, codes, recipients <= claimed) == ("queued", {409}, True)
                assert kinds(email.id) == ["scheduled", "queued"]
        assert Usage.objects.get().used == self.EMAILS - cancelled
        expected = {"status.cancelled": cancelled, "status.queued": self.EMAILS - cancelled}
        expected |= {"recipients.accepted": 3 * self.EMAILS, "recipients.cancelled": 3 * cancelled}
        assert counter_values() == {name: count for name, count in expected.items() if count}

    def test_an_email_is_moved_as_a_whole_or_sent_as_a_whole(self, key, due):
        moment = later(days=1)
        answers, claimed = self.meet(
            due, lambda email_id: Api(key).patch(f"/emails/{email_id}", {"scheduledFor": moment}), callers=2
        )
        for email in Email.objects.prefetch_related("recipients"):
            recipients = {recipient.id for recipient in email.recipients.all()}
            codes = {answer.status_code for answer in answers[email.id]}
            assert {recipient.state for recipient in email.recipients.all()} == {email.status}
            if email.status == "scheduled":
                assert (codes, recipients & claimed) == ({200}, set())
            else:
                assert (email.status, codes, recipients <= claimed) == ("queued", {409}, True)
