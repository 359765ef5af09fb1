"""Erasures by API: deleted and remaining records, receipts, interruptions, and hashed suppressions."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from console.privacy import services
from console.privacy.models import Erasure
from console.privacy.tasks import erase
from core.lib.ids import new_id
from core.workspaces.audit import AuditAction
from core.workspaces.models import AuditEntry
from core.workspaces.retention import only_one
from emails.models import Acceptance, Email
from emails.upkeep import erasure as email_steps
from events.models import Event
from interfaces.inbound.models import MailReport, ProviderReport
from interfaces.inbound.processing import process_reports
from suppressions.models import Suppression
from tests.conftest import Account, Api, mail, make_key
from tests.console.dashboard.conftest import make_caught, make_received, signed_in
from tests.console.privacy.people import ADA, tables_containing, use_everything
from tests.emails.builders import OK, deliver, deliver_all, send
from tests.events.feed import publish_committed
from tests.interfaces.inbound.dsns import dsn
from tests.rows import each
from webhooks.models import WebhookDelivery
from webhooks.services import create_webhook

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_rest_between_steps(monkeypatch):
    monkeypatch.setattr("core.workspaces.retention.REST_RATIO", 0.0)


@pytest.fixture
def owner(alice: Account) -> Client:
    return signed_in(alice.owner)


def request(api: Api, email: str = ADA, **fields: Any) -> str:
    response = api.post("/erasures", {"email": email, **fields})
    assert response.status_code == 202, response.content
    assert response.json()["status"] == "processing"
    return str(response.json()["id"])


def receipt(api: Api, erasure_id: str) -> Any:
    return api.get(f"/erasures/{erasure_id}").json()


def test_one_process_erases_at_a_time(api):
    erasure_id = request(api)
    with only_one("erasures") as is_first:
        assert is_first
        erase()
        # A run of one batch needs no lock.
        assert Erasure.objects.get().step == 1
    erase()
    assert receipt(api, erasure_id)["status"] == "completed"


def erase_now(api: Api, email: str = ADA, **fields: Any) -> Any:
    erasure_id = request(api, email, **fields)
    erase()
    return receipt(api, erasure_id)


def test_nothing_but_what_the_receipt_names_is_left(api: Api, alice: Account, owner):
    use_everything(api, alice)
    body = erase_now(api)
    assert (body["status"], body["email"], body["waiting"]) == ("completed", "", 0)
    deleted = {kind: count for kind, count in body["deleted"].items() if count}
    assert deleted.pop("events") >= 21
    assert deleted.pop("webhookDeliveries") >= 14
    assert deleted == {
        "emails": 7,
        "receivedEmails": 2,
        "idempotencyKeys": 1,
        "auditEntries": 1,
        "suppressions": 1,
        "caughtMessages": 1,
    }
    assert tables_containing(ADA) == set()
    assert not Email.objects.exists()
    assert {entry["kind"] for entry in body["kept"]} >= {"suppression", "backups", "accounts"}


def test_each_event_and_delivery_counts_once(api: Api, alice: Account):
    create_webhook(alice.workspace, url="http://127.0.0.1:9/hook", events=["sent", "suppression.added"])
    send(api, to=ADA)
    deliver_all()
    api.post("/suppressions", {"email": ADA})
    publish_committed()
    events, deliveries = Event.objects.count(), WebhookDelivery.objects.count()
    deleted = erase_now(api)["deleted"]
    assert (deleted["emails"], deleted["events"], deleted["webhookDeliveries"]) == (1, events, deliveries)
    assert min(events, deliveries) > 1


def test_a_longer_address_and_another_workspace_stay(api: Api, bobs_api: Api):
    others = [send(api, to=to) for to in ("xada@example.com", "ada@example.com.au", "ada@example.community")]
    others.append(send(api, to="bob@example.com", subject="a+ada@example.com"))
    foreign = send(bobs_api, to=ADA, **{"from": "x@bob.example"})
    send(api, to=ADA)
    deliver_all()
    assert erase_now(api)["deleted"]["emails"] == 1
    assert {*Email.objects.values_list("id", flat=True)} == {*others, foreign}


@each("longer", ["xada@example.com", "ada@example.com.au", "ada@example.community", "a+ada@example.com"])
def test_other_records_about_a_longer_address_stay(api: Api, alice: Account, longer):
    api.post("/suppressions", {"email": longer})
    make_caught(alice.workspace, f"To: {longer}\r\n\r\n{longer}, {longer}".encode(), recipient=longer)
    deleted = erase_now(api)["deleted"]
    assert (deleted["auditEntries"], deleted["caughtMessages"], deleted["suppressions"]) == (0, 0, 0)
    assert tables_containing(longer) >= {"workspaces_auditentry", "inbox_caughtmail", "suppressions_suppression"}


@each("quote", ["To: Ada <%s>", "To: %s", "Subject: (%s)", "?to=3D%s&", "?to=%%3C%s%%3E", "=20%s=20"])
def test_a_caught_message_that_names_the_address_is_deleted(api: Api, alice: Account, quote):
    make_caught(alice.workspace, (quote % "Ada@Example.com").encode(), recipient="bob@example.com")
    assert erase_now(api)["deleted"]["caughtMessages"] == 1


@each("subject", ["From %s.", "From %s, again", "(%s)", "%s - again", "From %s-", "<%s>", "%s"])
def test_the_address_is_found_in_a_sentence(api: Api, subject):
    send(api, to="bob@example.com", subject=subject % ADA)
    deliver_all()
    assert erase_now(api)["deleted"]["emails"] == 1


@each("fields", [
    {"from": "Ada <ada@alice.example>"}, {"replyTo": "ada@alice.example"}, {"subject": "For ada@alice.example"},
    {"headers": {"X-Customer": "ada@alice.example"}}, {"metadata": {"customer": "ada@alice.example"}},
])  # fmt: skip
def test_each_field_of_an_email_to_others_is_searched(api: Api, fields):
    send(api, to="bob@example.com", **fields)
    deliver_all()
    assert erase_now(api, "ada@alice.example")["deleted"]["emails"] == 1


@each("fields", [
    {"recipient": ADA}, {"reply_address": ADA}, {"envelope_from": ADA}, {"addresses": {"cc": [{"email": ADA}]}},
])  # fmt: skip
def test_each_address_of_a_received_email_is_searched(api: Api, alice: Account, fields):
    others = {"envelope_from": "eve@example.org", "addresses": {}}
    make_received(alice.workspace, **{**others, **fields})
    assert erase_now(api)["deleted"]["receivedEmails"] == 1


def test_the_address_is_found_in_any_case(api: Api):
    for to in ("ADA@example.com", "Ada@EXAMPLE.com"):
        send(api, to=to)
    deliver_all()
    assert erase_now(api, "aDa@Example.Com")["deleted"]["emails"] == 2


def test_reports_that_arrive_afterwards_are_emptied(api: Api):
    gone = new_id()
    MailReport.objects.create(recipient_id=gone, sender=ADA, peer="192.0.2.1", source=dsn(ADA))
    event = {
        "provider": "mailgun",
        "message_id": "gone",
        "digest": b"1",
        "event": {"recipient": ADA, "kind": "bounced"},
    }
    ProviderReport.objects.create(**event)
    ProviderReport.objects.update(received_at=timezone.now() - timedelta(days=2))
    process_reports()
    assert [row.verdict for row in (MailReport.objects.get(), ProviderReport.objects.get())] == ["not_ours"] * 2
    assert tables_containing(ADA) == set()
    assert bytes(MailReport.objects.get().source) == b""


def test_the_name_of_the_person_in_a_stored_response_goes_with_the_address(api: Api):
    template = {"name": "t", "subject": "Hi", "htmlContent": "<p>x</p>", "alias": "hi"}
    api.post("/templates", template)
    recipients = [{"to": f"Lovelace <{ADA}>"}, {"to": "Bob <bob@example.com>"}]
    batch = {"from": "x@alice.example", "templateId": "hi", "recipients": recipients}
    api.post("/emails/batch", batch, idempotency_key="batch")
    deliver_all()
    erase_now(api)
    assert tables_containing("Lovelace") == set()
    answer = Acceptance.objects.get().answer
    assert [one["to"] for one in answer["emails"]] == ["erased@invalid", "Bob <bob@example.com>"]


class TestSuppressions:
    def test_a_suppression_stays_as_a_hash_and_still_refuses(self, api: Api):
        api.post("/suppressions", {"email": ADA})
        erase_now(api)
        row = Suppression.objects.get()
        assert (row.email, ADA in row.address_key) == ("erased@invalid", False)
        for address in (ADA, "ADA@EXAMPLE.COM"):
            response = api.post("/emails/send", mail(to=address))
            assert response.json()["code"] == "recipient_suppressed"
        assert api.post("/emails/send", mail(to=["bob@example.com"])).status_code == 202

    def test_a_batch_finds_it_and_names_the_right_recipient(self, api: Api):
        api.post("/suppressions", {"email": ADA})
        erase_now(api)
        api.post("/templates", {"name": "t", "subject": "Hi", "htmlContent": "<p>x</p>", "alias": "hi"})
        recipients = [{"to": address} for address in ("a@example.com", ADA, "b@example.com")]
        body = api.post(
            "/emails/batch", {"from": "x@alice.example", "templateId": "hi", "recipients": recipients}
        ).json()
        assert [(entry["index"], entry["to"]) for entry in body["rejected"]] == [(1, ADA)]

    def test_that_of_a_stream_blocks_the_stream_only(self, api: Api):
        api.post("/streams", {"id": "news", "name": "News", "kind": "bulk"})
        api.post("/suppressions", {"email": ADA, "stream": "news"})
        assert erase_now(api)["deleted"]["suppressions"] == 1
        assert api.post("/emails/send", mail(to=ADA, stream="news")).status_code == 422
        assert api.post("/emails/send", mail(to=ADA)).status_code == 202

    def test_without_keepSuppression_it_goes(self, api: Api):  # noqa: N802
        api.post("/suppressions", {"email": ADA})
        assert erase_now(api, keepSuppression=False)["deleted"]["suppressions"] == 1
        assert not Suppression.objects.exists()
        assert api.post("/emails/send", mail(to=ADA)).status_code == 202

    def test_a_hash_goes_without_keepSuppression_too(self, api: Api):  # noqa: N802
        api.post("/suppressions", {"email": ADA})
        erase_now(api)
        erase_now(api, keepSuppression=False)
        assert not Suppression.objects.exists()

    def test_suppressed_again_and_erased_again_it_is_one_row(self, api: Api):
        for _ in range(2):
            api.post("/suppressions", {"email": ADA})
            erase_now(api)
        assert [row.email for row in Suppression.objects.all()] == ["erased@invalid"]

    def test_a_hash_of_a_former_key_is_found(self, api: Api, settings):
        api.post("/suppressions", {"email": ADA})
        erase_now(api)
        settings.APP_KEYS = (("new", b"n" * 32), *settings.APP_KEYS)
        assert api.post("/emails/send", mail(to=ADA)).status_code == 422
        settings.APP_KEYS = settings.APP_KEYS[:1]
        assert api.post("/emails/send", mail(to=ADA)).status_code == 202

    def test_the_owner_removes_it_on_the_page_of_the_recipient(self, api: Api, owner):
        api.post("/suppressions", {"email": ADA})
        erase_now(api)
        row = Suppression.objects.get()
        assert row.id in owner.get(f"/dashboard/emails/recipient/?address={ADA}").content.decode()
        owner.post(f"/dashboard/suppressions/{row.id}/delete/")
        assert api.post("/emails/send", mail(to=ADA)).status_code == 202


class TestProcessing:
    def test_emails_on_their_way_are_erased_when_they_have_an_outcome(self, api: Api):
        send(api, to=ADA)
        send(api, to=ADA)
        deliver(OK)
        erasure_id = request(api)
        erase()
        body = receipt(api, erasure_id)
        assert (body["status"], body["waiting"], body["deleted"]["emails"]) == ("processing", 1, 1)
        assert body["email"] == ADA
        deliver_all()
        erase()
        # The next pass is not due yet.
        assert receipt(api, erasure_id)["status"] == "processing"
        Erasure.objects.update(due_at=timezone.now() - timedelta(days=1))
        erase()
        body = receipt(api, erasure_id)
        assert (body["status"], body["waiting"], body["deleted"]["emails"]) == ("completed", 0, 2)

    def test_emails_to_others_that_name_the_person_are_waited_for_too(self, api: Api):
        send(api, to=ADA, subject=f"For {ADA}")
        for _ in range(2):
            send(api, to="bob@example.com", metadata={"customer": ADA})
        deliver(OK)
        erasure_id = request(api)
        erase()
        body = receipt(api, erasure_id)
        assert (body["status"], body["waiting"], body["deleted"]["emails"]) == ("processing", 2, 1)
        deliver_all()
        Erasure.objects.update(due_at=timezone.now() - timedelta(days=1))
        erase()
        body = receipt(api, erasure_id)
        assert (body["status"], body["waiting"], body["deleted"]["emails"]) == ("completed", 0, 3)
        assert not Email.objects.exists()

    def test_each_of_several_people_is_waited_for(self, api: Api):
        people = [f"p{number}@example.com" for number in range(3)]
        for one in people:
            send(api, to=one, subject=f"For {one}")
        ids = [request(api, one) for one in people]
        erase()
        assert [receipt(api, erasure_id)["waiting"] for erasure_id in ids] == [1, 1, 1]

    def test_the_suppression_blocks_until_the_last_email_has_gone(self, api: Api):
        send(api, to=ADA)
        api.post("/suppressions", {"email": ADA})
        request(api)
        erase()
        assert Suppression.objects.get().email == ADA

    @each("size", [1, 2, 100])
    def test_pages_of_any_size_find_everything(self, api: Api, alice: Account, monkeypatch, size):
        for name in ("EMAILS", "SCANNED_EMAILS", "SCANNED_ROWS"):
            monkeypatch.setattr(email_steps, name, size)
        monkeypatch.setattr("receiving.deletion.SCANNED_EMAILS", size)
        use_everything(api, alice)
        body = erase_now(api)
        assert (body["deleted"]["emails"], body["deleted"]["receivedEmails"]) == (7, 2)

    def test_people_of_a_pass_have_their_own_receipts(self, api: Api):
        for number in range(3):
            for _ in range(number + 1):
                send(api, to=f"p{number}@example.com")
        send(api, to="bob@example.com", metadata={"of": ["p0@example.com", "p2@example.com"]})
        deliver_all()
        ids = [request(api, f"p{number}@example.com") for number in range(3)]
        erase()
        assert [receipt(api, erasure_id)["deleted"]["emails"] for erasure_id in ids] == [2, 2, 4]

    def test_an_interrupted_erasure_continues_and_counts_nothing_twice(self, api: Api, alice: Account, monkeypatch):
        monkeypatch.setattr(email_steps, "EMAILS", 2)
        use_everything(api, alice)
        erasure_id = request(api)
        steps = services.STEPS
        interruptions = 0
        for number in range(len(steps)):
            # Once after the work of a step, which is rolled back, and once between two steps.
            monkeypatch.setattr(services, "STEPS", [*steps[:number], failing(steps[number]), *steps[number + 1 :]])
            with pytest.raises(InterruptedError):
                erase()
            Erasure.objects.update(due_at=timezone.now() - timedelta(days=1))
            monkeypatch.setattr(services, "STEPS", steps)
            for _ in zip(range(1), services.process_erasures(), strict=False):
                interruptions += 1
        erase()
        body = receipt(api, erasure_id)
        assert body["status"] == "completed"
        assert (body["deleted"]["emails"], body["deleted"]["receivedEmails"]) == (7, 2)
        assert interruptions == len(steps)

    def test_an_error_of_one_workspace_delays_no_other(self, api: Api, bobs_api: Api, bob: Account, monkeypatch):
        ids = request(api), request(bobs_api)
        steps = services.STEPS

        def step(scope, place):
            if scope.workspace_id != bob.workspace.id:
                raise InterruptedError
            return steps[0](scope, place)

        monkeypatch.setattr(services, "STEPS", [step, *steps[1:]])
        with pytest.raises(InterruptedError):
            erase()
        erase()
        assert [receipt(api, ids[0])["status"], receipt(bobs_api, ids[1])["status"]] == ["processing", "completed"]

    def test_the_same_request_returns_the_same_erasure_until_it_is_completed(self, api: Api):
        first = request(api)
        assert request(api, "ADA@example.com") == first
        assert request(api, keepSuppression=False) != first
        erase()
        assert request(api) != first

    def test_the_number_of_pending_erasures_is_limited(self, api: Api, monkeypatch):
        monkeypatch.setattr(services, "MAX_PENDING", 2)
        request(api, "a@example.com")
        request(api, "b@example.com")
        response = api.post("/erasures", {"email": "c@example.com"})
        assert (response.status_code, response.json()["code"]) == (403, "plan_limit_reached")


def failing(step):
    def fail(scope, place):
        step(scope, place)
        raise InterruptedError

    return fail


class TestAccess:
    @each("scope", ["read_only", "sending_access", "sending_only"])
    def test_only_full_access_erases(self, alice: Account, scope):
        response = Api(make_key(alice.workspace, scope)).post("/erasures", {"email": ADA})
        assert (response.status_code, response.json()["code"]) == (403, "insufficient_scope")

    def test_a_foreign_erasure_is_not_found(self, api: Api, bobs_api: Api):
        erasure_id = request(api)
        assert bobs_api.get(f"/erasures/{erasure_id}").status_code == 404
        assert Api().post("/erasures", {"email": ADA}).status_code == 401

    @each("body", [{}, {"email": "nobody"}, {"email": ADA, "keepSuppression": "no"}, {"email": ADA, "all": True}])
    def test_invalid_fields_are_refused(self, api: Api, body):
        assert api.post("/erasures", body).json()["code"] == "validation_error"

    def test_the_audit_log_has_the_request_without_the_address(self, api: Api, alice: Account):
        erasure_id = request(api)
        erase()
        entries = AuditEntry.objects.filter(workspace=alice.workspace, about=erasure_id)
        assert {entry.act for entry in entries} == {AuditAction.ERASURE_REQUESTED, AuditAction.ADDRESS_ERASED}


class TestDashboard:
    def test_an_owner_erases_a_person_and_sees_the_receipt(self, api: Api, owner):
        send(api, to=ADA)
        deliver_all()
        page = f"/dashboard/emails/recipient/erase/?address={ADA}"
        assert page in owner.get(f"/dashboard/emails/recipient/?address={ADA}").content.decode().replace("%40", "@")
        assert "cannot be undone" in owner.get(page).content.decode()
        assert not Erasure.objects.exists()
        response = owner.post(page, follow=True)
        assert "Being erased" in response.content.decode()
        erase()
        shown = owner.get(response.redirect_chain[-1][0]).content.decode()
        assert "No longer in backups from" in shown
        assert ADA not in shown

    def test_other_members_and_owners_of_others_do_not(self, alice: Account, bob: Account, api: Api):
        erasure_id = request(api)
        other = signed_in(bob.owner)
        assert other.get(f"/dashboard/emails/recipient/erasure/?id={erasure_id}").status_code == 404
        alice.workspace.memberships.update(role="member")
        member = signed_in(alice.owner)
        assert "/erase/" not in member.get(f"/dashboard/emails/recipient/?address={ADA}").content.decode()
        for path in (f"recipient/erasure/?id={erasure_id}", f"recipient/erase/?address={ADA}"):
            assert member.get(f"/dashboard/emails/{path}").status_code == 404
