"""Suppressed recipients: refused at acceptance, and checked again when a worker claims them."""

import pytest

from core.counters import counters
from core.lib.worker.processor import QueueProcessor
from core.workspaces.models import Usage
from emails.models import Email, QueueEntry, Recipient
from emails.sending.emails_work import EmailQueueWork
from emails.sending.outcomes import SendResult
from suppressions.models import Suppression
from suppressions.notices import SuppressionNotice
from suppressions.services import suppress_address
from tests.conftest import Api, later, mail
from tests.core.delivery.relaying import relay, run
from tests.core.delivery.scripted import ScriptedServer, StubLease
from tests.emails.builders import make_due, nothing_was_written, send
from tests.rows import each

pytestmark = pytest.mark.django_db

Reason = Suppression.Reason


class TestAcceptance:
    def test_the_error_contains_the_address_the_field_and_the_reason(self, api: Api, alice):
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

    def test_every_suppressed_recipient_is_reported_with_its_field(self, api: Api, alice):
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

    @each("reason", list(Reason))
    def test_every_reason_suppresses(self, api: Api, alice, reason):
        suppress_address(alice.workspace, address="ada@example.com", reason=reason)
        assert api.post("/emails/send", mail()).json()["recipients"][0]["reason"] == reason

    @each("other", ["ada+news@example.com", "a.da@example.com", "ada@mail.example.com"])
    def test_similar_addresses_are_not_suppressed(self, api: Api, other):
        api.post("/suppressions", {"email": "ada@example.com"})
        assert api.post("/emails/send", mail(to=other)).status_code == 202

    def test_sender_and_reply_to_are_not_checked(self, api: Api):
        api.post("/suppressions", {"emails": ["hi@alice.example", "help@alice.example"]})
        assert api.post("/emails/send", mail(replyTo="help@alice.example")).status_code == 202

    def test_acceptance_ignores_suppressions_of_another_workspace(self, api: Api, bobs_api: Api):
        bobs_api.post("/suppressions", {"email": "ada@example.com"})
        assert api.post("/emails/send", mail()).status_code == 202


class TestClaim:
    def test_a_recipient_suppressed_later_fails_and_the_others_are_sent(self, api: Api, sending):
        body = mail(to=["a@example.com", "b@example.com"], cc=["c@example.com"])
        email_id = api.post("/emails/send", body).json()["id"]
        api.post("/suppressions", {"emails": ["B@example.com", "c@example.com"]})
        jobs = sending.claim(100).jobs
        assert [job.address for job in jobs] == ["a@example.com"]
        found = {one["email"]: one for one in api.get(f"/emails/{email_id}").json()["recipients"]}
        assert {name: (one["status"], one["reason"]) for name, one in found.items()} == {
            "a@example.com": ("queued", None),
            "b@example.com": ("failed", "recipient_suppressed"),
            "c@example.com": ("failed", "recipient_suppressed"),
        }
        assert found["b@example.com"]["errorMessage"]
        assert Email.objects.get().status == "queued"
        assert QueueEntry.objects.count() == 1

    def test_the_timeline_contains_the_failure_of_the_recipient(self, api: Api, sending):
        email_id = send(api)
        api.post("/suppressions", {"email": "ada@example.com"})
        assert sending.claim(100).jobs == []
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
        assert not QueueEntry.objects.exists()
        assert counters.total(alice.workspace.id, keys=["status.failed"]) == 1
        assert counters.total(alice.workspace.id, keys=["status.queued"]) == 0
        assert counters.total(alice.workspace.id, keys=["recipients.failed"]) == 1
        assert Usage.objects.get().used == 1, "accepted emails use quota"

    def test_many_suppressed_recipients_are_processed_in_one_run(self, api: Api, alice, sending):
        """A claim with only suppressed recipients is not the end of the queue."""
        addresses = [f"u{number}@example.com" for number in range(5 * sending.sessions)]
        assert api.post("/emails/send", mail(to=addresses)).status_code == 202
        for address in addresses:
            suppress_address(alice.workspace, address=address, reason=Reason.BOUNCE)
        QueueProcessor(sending).run()
        assert not QueueEntry.objects.exists()

    def test_a_scheduled_email_is_checked_when_its_time_comes(self, api: Api, sending):
        api.post("/emails/send", mail(to=["a@example.com", "b@example.com"], scheduledFor=later()))
        api.post("/suppressions", {"email": "a@example.com"})
        assert sending.claim(100).jobs == []
        make_due()
        assert [job.address for job in sending.claim(100).jobs] == ["b@example.com"]
        assert set(Recipient.objects.values_list("address", "state")) == {
            ("a@example.com", "failed"),
            ("b@example.com", "queued"),
        }


class TestDelivery:
    """Suppressions that are committed after the claim."""

    def perform(self, api: Api, workspace_id: str, suppressed: str, body=None) -> tuple[EmailQueueWork, ScriptedServer]:
        """Claim and send an email to ada@example.com; suppress an address while the host handles DATA."""
        api.post("/emails/send", body or mail())

        async def suppress(visit) -> None:
            work.stop_suppressed(SuppressionNotice.about(workspace_id, [suppressed]))
            await visit.say(b"354 Go ahead\r\n")

        async def send() -> SendResult:
            async with server:
                work._transport = relay(server)
                return await work.perform(job, StubLease())

        server = ScriptedServer({"data": suppress}, extensions=())
        work = EmailQueueWork(relay(server), sessions=10)
        (job,) = work.claim(10).jobs
        work.record([run(send())])
        return work, server

    @each("html", ["<p>Hi</p>", "<p>Hi</p>" * 20_000])
    def test_an_address_suppressed_before_the_final_dot_gets_nothing(self, api: Api, alice, html):
        _, server = self.perform(api, alice.workspace.id, "ADA@example.com", mail(html=html))
        assert server.said("DATA")
        assert server.messages == []
        recipient = Recipient.objects.get()
        assert (recipient.state, recipient.reason) == ("failed", "recipient_suppressed")
        assert not QueueEntry.objects.exists()

    def test_another_address_and_another_workspace_are_sent_to(self, api: Api, alice, bob):
        _, server = self.perform(api, alice.workspace.id, "bob@example.com")
        assert len(server.messages) == 1
        _, server = self.perform(api, bob.workspace.id, "ada@example.com")
        assert len(server.messages) == 1

    def test_a_suppression_that_was_deleted_again_does_not_affect_later_claims(self, api: Api, alice):
        work, _ = self.perform(api, alice.workspace.id, "ada@example.com")
        api.post("/emails/send", mail())
        (job,) = work.claim(10).jobs
        assert not work._in_flight[job.claim].is_suppressed

    def test_a_refused_job_is_not_in_flight(self, api: Api, sending):
        api.post("/emails/send", mail(to=["a@example.com", "b@example.com"]))
        api.post("/suppressions", {"email": "b@example.com"})
        (job,) = sending.claim(100).jobs
        assert list(sending._in_flight) == [job.claim]
