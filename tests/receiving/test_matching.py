"""Replies: reply addresses, Message-IDs, proof of the sender, and answers to received emails."""

import pytest

from core.lib.ids import to_uuid
from core.lib.worker.lease_queue import Claim
from emails.models import Email, Recipient
from emails.sending.outgoing_messages import rebuild_message
from emails.sending.reply_address import reply_address
from emails.upkeep.retention import delete_emails
from events.models import Event
from receiving import content, publishing
from receiving.models import Message, ReceivedEmail
from receiving.processing import ReadResult, record_readings
from receiving.reading.budget import ProcessorBudget
from receiving.reading.message import read_received
from tests.conftest import Api, make_domain, make_key
from tests.emails.builders import deliver_all, send
from tests.receiving.builders import PLAIN, arrive, process_received, receive, with_field
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(key) -> Recipient:
    """A recipient, ada@example.com, of an email with reply tracking."""
    send(key, replyTracking=True)
    return Recipient.objects.get()


def address_of(recipient: Recipient, domain: str = "alice.example") -> str:
    return reply_address(to_uuid(recipient.id), domain=domain)


def with_verdict(email: ReceivedEmail, result: str) -> ReceivedEmail:
    """Read a stored message as if its origin had been verified with a result."""
    message = Message.objects.get(id=email.message_id)
    source = content.open_range(message.content_id, 0, message.size)
    reading = read_received(source, envelope_from=message.envelope_from, budget=ProcessorBudget())
    Message.objects.filter(id=message.id).update(fence=1)
    verdict = {"result": result, "spf": {}, "dkim": [], "dmarc": {}, "arc": {}}
    record_readings([ReadResult(Claim(to_uuid(message.id, prefix="msg_"), 1, 1), reading, verdict)])
    email.refresh_from_db()
    return email


def shown_match(key: Api, email: ReceivedEmail):
    return key.get(f"/inbound/emails/{email.id}").json()["replyToEmail"]


def test_each_recipient_has_a_reply_address_of_its_own(key):
    send(
        key,
        to=["Ada <ada@example.com>", "grace@example.com"],
        replyTracking=True,
        **{"from": "Shop <hi@alice.example>"},
    )
    fields = []
    for recipient in Recipient.objects.select_related("email").order_by("position"):
        message = rebuild_message(recipient).decode()
        (field,) = [line for line in message.replace("\r\n ", " ").split("\r\n") if line.startswith("Reply-To:")]
        assert field == f"Reply-To: Shop <{address_of(recipient)}>"
        fields.append(field)
    assert len(set(fields)) == 2


def test_without_a_receiving_domain_answers_go_to_the_shared_one(api, settings):
    settings.RECEIVING_DOMAIN = "in.service.example"
    send(api, replyTracking=True)
    assert Email.objects.get().reply_domain == "in.service.example"


def test_an_answer_to_a_reply_address_matches_the_email(key, sent):
    email = receive(to=address_of(sent).upper().replace("ALICE.EXAMPLE", "alice.example"))
    assert (email.status, email.route_id) == ("processed", None)
    expected = {
        "emailId": sent.email_id,
        "recipient": "ada@example.com",
        "matchedBy": "address",
        "fromRecipient": False,
    }
    assert shown_match(key, email) == expected
    assert [item["id"] for item in key.get("/inbound/emails", {"emailId": sent.email_id}).json()["data"]] == [email.id]
    events = key.get(f"/emails/{sent.email_id}/events").json()["data"]
    assert events[-1]["eventType"] == "replied"
    assert events[-1]["payload"] == {"emailId": sent.email_id, "to": "ada@example.com", "inboundId": email.id}


@each("fields", [
    "In-Reply-To: <{id}@alice.example>",
    "References: <other@x.example> <{id}@alice.example>",
    "References: <{id}@ALICE.example> <later@x.example>",
])  # fmt: skip
def test_a_message_id_of_ours_matches(key, route, sent, fields):
    match = shown_match(key, receive(with_field(fields.format(id=sent.id))))
    assert (match["emailId"], match["matchedBy"]) == (sent.email_id, "message_id")


@each("field", [
    "In-Reply-To: <{id}@other.example>",
    "In-Reply-To: <{id}>",
    "In-Reply-To: <x{id}@alice.example>",
    "In-Reply-To: <0000000000000000000000@alice.example>",
])  # fmt: skip
def test_other_message_ids_match_nothing(key, route, sent, field):
    assert shown_match(key, receive(with_field(field.format(id=sent.id)))) is None


def test_a_message_id_of_another_workspace_matches_nothing(key, route, bob):
    make_domain(bob.workspace, "bob.example")
    send(Api(make_key(bob.workspace)), **{"from": "x@bob.example"})
    recipient = Recipient.objects.get()
    email = receive(with_field(f"In-Reply-To: <{recipient.id}@bob.example>"))
    assert shown_match(key, email) is None
    assert not Event.objects.filter(kind="replied").exists()


def test_a_reply_token_of_another_workspace_is_an_ordinary_address(key, route, bob):
    make_domain(bob.workspace, "bob.example")
    send(Api(make_key(bob.workspace)), **{"from": "x@bob.example"}, replyTracking=True)
    email = receive(to=address_of(Recipient.objects.get()))
    assert (email.route_id, shown_match(key, email)) == (route.id, None)


def test_a_reply_at_the_shared_domain_belongs_to_the_sender(key, sent, bob):
    email = receive(to=address_of(sent, "in.demo.example"))
    assert shown_match(key, email)["emailId"] == sent.email_id
    assert Api(make_key(bob.workspace)).get("/inbound/emails").json()["data"] == []


@each(("sender", "result", "expected"), [
    ("Ada@Example.com", "pass", True), ("Ada@Example.com", "none", False), ("Ada@Example.com", "fail", False),
    ("eve@example.com", "pass", False), ("ada@example.com, eve@example.com", "pass", False),
])  # fmt: skip
def test_only_a_verified_from_of_the_recipient_proves_the_sender(key, sent, sender, result, expected):
    source = PLAIN.replace(b"Ada Lovelace <ada@example.com>", sender.encode())
    email = with_verdict(arrive(source, address_of(sent)), result)
    assert shown_match(key, email)["fromRecipient"] is expected


def test_a_second_from_field_proves_nothing(key, sent):
    email = with_verdict(arrive(with_field("From: eve@example.com"), address_of(sent)), "pass")
    assert shown_match(key, email)["fromRecipient"] is False


def test_automatic_answers_make_no_event(key, sent):
    email = receive(with_field("Auto-Submitted: auto-replied"), address_of(sent))
    assert shown_match(key, email)["emailId"] == sent.email_id
    assert not Event.objects.filter(kind="replied").exists()


def test_a_recipient_has_a_limited_number_of_events(key, sent, monkeypatch):
    monkeypatch.setattr(publishing, "MAX_REPLIED", 2)
    for number in range(3):
        receive(with_field(f"X-Number: {number}"), address_of(sent))
    assert Event.objects.filter(kind="replied").count() == 2
    assert key.get("/inbound/emails", {"emailId": sent.email_id}).json()["total"] == 3


def test_the_match_outlives_the_sent_email(key, sent, alice):
    deliver_all()
    email = receive(to=address_of(sent))
    delete_emails(alice.workspace.id, [to_uuid(sent.email_id)])
    assert not Email.objects.exists()
    assert shown_match(key, email) == {
        "emailId": sent.email_id,
        "recipient": "ada@example.com",
        "matchedBy": "address",
        "fromRecipient": False,
        "deleted": True,
    }
    # A later answer still arrives, without a match.
    later = receive(with_field("X-Later: 1"), address_of(sent))
    assert shown_match(key, later) is None


def test_simulated_emails_match_test_emails_only(key, test_key, alice, route):
    send(key)
    live = Recipient.objects.get()
    send(test_key)
    test = Recipient.objects.exclude(id=live.id).get()

    def simulate(recipient: Recipient):
        raw = with_field(f"In-Reply-To: <{recipient.id}@alice.example>").decode()
        body = {"recipient": "support@alice.example", "envelopeFrom": "ada@example.com", "raw": raw}
        created = test_key.post("/inbound/emails", body)
        process_received()
        return test_key.get(f"/inbound/emails/{created.json()['id']}").json()["replyToEmail"]

    assert simulate(live) is None
    assert simulate(test)["emailId"] == test.email_id
    assert shown_match(key, receive(with_field(f"In-Reply-To: <{test.id}@alice.example>"))) is None


def test_an_answer_takes_recipient_subject_and_thread(key, route):
    received = receive(with_field("References: <zero@example.com>"))
    response = key.post("/emails/send", {"from": "hi@alice.example", "text": "On its way.", "inReplyToId": received.id})
    assert response.status_code == 202, response.json()
    email = Email.objects.get()
    assert (email.to, email.subject) == (["ada@example.com"], "Re: Where is my order?")
    assert email.headers == {"In-Reply-To": "<one@example.com>", "References": "<zero@example.com> <one@example.com>"}


def test_an_answer_prefers_reply_to_and_given_fields(key, route):
    received = receive(with_field("Reply-To: Desk <desk@example.com>").replace(b"Where is", b"RE: Where is"))
    body = {"from": "hi@alice.example", "text": "Yes", "inReplyToId": received.id}
    assert key.post("/emails/send", body).status_code == 202
    assert Email.objects.get().to == ["desk@example.com"]
    assert Email.objects.get().subject == "RE: Where is my order?"
    Email.objects.all().delete()
    given = {"to": "grace@example.com", "subject": "Other", "headers": {"in-reply-to": "<x@y.example>"}}
    assert key.post("/emails/send", {**body, **given}).status_code == 202
    email = Email.objects.get()
    assert (email.to, email.subject, email.headers["in-reply-to"]) == (["grace@example.com"], "Other", "<x@y.example>")
    assert "In-Reply-To" not in email.headers


def test_an_answer_to_nothing_is_refused(key, route, bob):
    received = receive()
    other = Api(make_key(bob.workspace))
    make_domain(bob.workspace, "bob.example")
    body = {"from": "x@bob.example", "text": "Hi", "inReplyToId": received.id}
    assert other.post("/emails/send", body).json()["code"] == "received_email_not_found"
    nobody = receive(PLAIN.replace(b"From: Ada Lovelace <ada@example.com>\r\n", b"From: nobody\r\n"))
    response = key.post("/emails/send", {"from": "x@alice.example", "text": "Hi", "inReplyToId": nobody.id})
    assert [error["field"] for error in response.json()["errors"]] == ["to"]
    assert key.post("/emails/send", {"from": "x@alice.example", "text": "Hi"}).status_code == 422


def test_a_long_thread_is_shortened(key, route):
    ids = " ".join(f"<{number:080}@example.com>" for number in range(60))
    received = receive(with_field(f"References: {ids}"))
    body = {"from": "hi@alice.example", "text": "Hi", "inReplyToId": received.id}
    assert key.post("/emails/send", body).status_code == 202
    references = Email.objects.get().headers["References"].split()
    first, *last = references
    assert (first, last) == (ids.split()[0], [*ids.split(), "<one@example.com>"][-len(last) :])
    assert len(" ".join(references)) <= 900
