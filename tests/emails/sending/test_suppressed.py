"""Nobody on the suppression list is sent to: refused at acceptance, and again when a worker takes the recipient."""

from uuid import UUID

import pytest

from analytics import counters
from delivery.transports.relay import inbox_transport
from emails.models import Acceptance, Content, Email, Event, Pending, Recipient
from emails.sending import queue
from emails.sending.sending import Sending
from lib.worker.processor import Drain
from suppressions.models import Suppression
from suppressions.services import suppress_address
from tests.conftest import Api, mail
from tests.emails.sending.test_schedule import later, let_time_come
from workspaces.models import Usage

pytestmark = pytest.mark.django_db

Reason = Suppression.Reason


@pytest.fixture
def sending(monkeypatch) -> Sending:
    monkeypatch.setattr("emails.sending.sending.PROMOTE_EVERY_SECONDS", 0)
    """A worker's claims; nothing is handed over here."""
    return Sending(inbox_transport(port=1, ehlo_name="localhost"), sessions=10)


def nothing_was_written() -> bool:
    written = (Email, Recipient, Pending, Event, Acceptance, Content)
    return not any(model.objects.exists() for model in written) and not Usage.objects.filter(used__gt=0).exists()


class TestAtAcceptance:
    def test_the_answer_names_the_address_the_field_and_the_reason(self, api: Api, alice):
        row, _ = suppress_address(alice.workspace, address="ada@example.com", reason=Reason.BOUNCE)
        response = api.post("/emails/send", mail(to="Ada L <ada@example.com>", idempotencyKey="k"))
        body = response.json()
        assert (response.status_code, response["Content-Type"]) == (422, "application/problem+json")
        assert body == {
            "type": body["type"],
            "title": "Recipient suppressed",
            "status": 422,
            "code": "recipient_suppressed",
            "detail": "ada@example.com is on the suppression list (bounce).",
            "requestId": response["X-Request-Id"],
            "recipients": [{"email": "ada@example.com", "field": "to[0]", "reason": "bounce", "suppressionId": row.id}],
        }
        assert body["type"].endswith("/docs/errors#recipient_suppressed")
        assert nothing_was_written()

    def test_every_suppressed_recipient_is_named_with_its_place(self, api: Api, alice):
        for name, reason in (("b", Reason.MANUAL), ("c", Reason.UNSUBSCRIBE), ("d", Reason.COMPLAINT)):
            suppress_address(alice.workspace, address=f"{name}@example.com", reason=reason)
        response = api.post(
            "/emails/send",
            mail(
                to=["a@example.com", "b@example.com"],
                cc=["x@example.com", "y@example.com", "C@Example.com"],
                bcc=["D <d@example.com>"],
            ),
        )
        assert [(one["email"].lower(), one["field"], one["reason"]) for one in response.json()["recipients"]] == [
            ("b@example.com", "to[1]", "manual"),
            ("c@example.com", "cc[2]", "unsubscribe"),
            ("d@example.com", "bcc[0]", "complaint"),
        ]
        assert response.json()["detail"].endswith("suppression list (manual).")
        assert nothing_was_written()

    @pytest.mark.parametrize("reason", list(Reason))
    def test_whatever_the_reason(self, api: Api, alice, reason):
        suppress_address(alice.workspace, address="ada@example.com", reason=reason)
        assert api.post("/emails/send", mail()).json()["recipients"][0]["reason"] == reason

    @pytest.mark.parametrize("spelling", ["ADA@EXAMPLE.COM", "Ada@example.com", "aDa@Example.Com"])
    def test_case_does_not_make_another_address(self, api: Api, spelling):
        api.post("/suppressions", {"email": "ada@example.com"})
        assert api.post("/emails/send", mail(to=spelling)).status_code == 422

    @pytest.mark.parametrize("other", ["ada+news@example.com", "a.da@example.com", "ada@mail.example.com"])
    def test_another_address_is_another_address(self, api: Api, other):
        api.post("/suppressions", {"email": "ada@example.com"})
        assert api.post("/emails/send", mail(to=other)).status_code == 202

    def test_an_international_domain_is_compared_as_its_a_label(self, api: Api):
        api.post("/suppressions", {"email": "ada@bücher.example"})
        assert api.post("/emails/send", mail(to="ada@xn--bcher-kva.example")).status_code == 422

    def test_a_removed_suppression_blocks_no_more(self, api: Api):
        row = api.post("/suppressions", {"email": "ada@example.com"}).json()
        api.delete(f"/suppressions/{row['id']}")
        assert api.post("/emails/send", mail()).status_code == 202

    def test_the_sender_and_reply_to_are_no_recipients(self, api: Api):
        api.post("/suppressions", {"emails": ["hi@alice.example", "help@alice.example"]})
        assert api.post("/emails/send", mail(replyTo="help@alice.example")).status_code == 202

    def test_another_workspaces_list_blocks_nobody(self, api: Api, bobs_api: Api):
        bobs_api.post("/suppressions", {"email": "ada@example.com"})
        assert api.post("/emails/send", mail()).status_code == 202


class TestAtTheClaim:
    def test_who_was_suppressed_since_fails_and_the_others_go_on(self, api: Api, sending):
        body = mail(to=["a@example.com", "b@example.com"], cc=["c@example.com"])
        email_id = api.post("/emails/send", body).json()["id"]
        api.post("/suppressions", {"emails": ["B@example.com", "c@example.com"]})
        parcels = sending.claim(100)
        assert [parcel.address for parcel in parcels] == ["a@example.com"]
        found = {one["email"]: one for one in api.get(f"/emails/{email_id}").json()["recipients"]}
        assert {name: (one["status"], one["reason"]) for name, one in found.items()} == {
            "a@example.com": ("queued", None),
            "b@example.com": ("failed", "recipient_suppressed"),
            "c@example.com": ("failed", "recipient_suppressed"),
        }
        assert found["b@example.com"]["errorMessage"]
        assert Email.objects.get().status == "queued"
        assert Pending.objects.count() == 1

    def test_the_timeline_tells_it_for_the_recipient(self, api: Api, sending):
        email_id = api.post("/emails/send", mail()).json()["id"]
        api.post("/suppressions", {"email": "ada@example.com"})
        assert sending.claim(100) == []
        *_, event = api.get(f"/emails/{email_id}/events").json()["data"]
        assert (event["eventType"], event["payload"]["to"]) == ("failed", "ada@example.com")
        assert event["payload"]["reason"] == "recipient_suppressed"
        assert event["payload"].keys() == {"emailId", "to", "code", "enhancedCode", "message", "reason"}

    def test_an_email_whose_recipients_are_all_suppressed_fails(self, api: Api, alice, sending):
        api.post("/emails/send", mail())
        api.post("/suppressions", {"email": "ada@example.com"})
        sending.claim(100)
        email = Email.objects.get()
        assert (email.status, email.sent_at) == ("failed", None)
        assert not Pending.objects.exists()
        assert counters.total(alice.workspace.id, keys=["status.failed"]) == 1
        assert counters.total(alice.workspace.id, keys=["status.queued"]) == 0
        assert counters.total(alice.workspace.id, keys=["recipients.failed"]) == 1
        assert Usage.objects.get().used == 1, "what was accepted was paid for"

    def test_a_long_row_of_them_ends_in_one_drain(self, api: Api, alice, sending):
        """A claim that finds nothing but them is not the end of the queue."""
        addresses = [f"u{number}@example.com" for number in range(5 * sending.sessions)]
        assert api.post("/emails/send", mail(to=addresses)).status_code == 202
        for address in addresses:
            suppress_address(alice.workspace, address=address, reason=Reason.BOUNCE)
        Drain(sending).run()
        assert not Pending.objects.exists()

    def test_a_scheduled_email_is_checked_when_its_time_comes(self, api: Api, sending):
        api.post("/emails/send", mail(to=["a@example.com", "b@example.com"], scheduledFor=later()))
        api.post("/suppressions", {"email": "a@example.com"})
        assert sending.claim(100) == []
        let_time_come()
        assert [parcel.address for parcel in sending.claim(100)] == ["b@example.com"]
        assert set(Recipient.objects.values_list("address", "state")) == {
            ("a@example.com", "failed"),
            ("b@example.com", "queued"),
        }

    def test_another_workspaces_list_stops_nobody(self, api: Api, bobs_api: Api, sending):
        api.post("/emails/send", mail())
        bobs_api.post("/suppressions", {"email": "ada@example.com"})
        assert len(sending.claim(100)) == 1

    def test_a_removed_suppression_stops_nobody(self, api: Api, sending):
        api.post("/emails/send", mail())
        row = api.post("/suppressions", {"email": "ada@example.com"}).json()
        api.delete(f"/suppressions/{row['id']}")
        assert len(sending.claim(100)) == 1

    def test_it_does_not_come_back(self, api: Api, sending):
        api.post("/emails/send", mail())
        api.post("/suppressions", {"email": "ada@example.com"})
        sending.claim(100)
        Suppression.objects.all().delete()
        assert queue.claim(100, after=UUID(int=0)) == []
