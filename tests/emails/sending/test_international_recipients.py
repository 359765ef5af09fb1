"""Internationalized recipients (RFC 6531): accepted, sent with SMTPUTF8, bounced by hosts without it."""

from email import message_from_bytes, message_from_string, policy

import pytest

from core.delivery.message.dkim import verify
from emails.models import Email, Recipient
from emails.sending.emails_work import EmailQueueWork
from suppressions.models import Suppression
from tests.conftest import Api, mail
from tests.core.delivery.relaying import relay, run
from tests.core.delivery.scripted import ScriptedServer, StubLease
from tests.rows import each

pytestmark = pytest.mark.django_db

ADDRESS = "\u7528\u6237@\u4f8b\u3048.jp"
STORED = "\u7528\u6237@xn--r8jz45g.jp"


def send_all(*, extensions: tuple[str, ...] = ("PIPELINING", "8BITMIME", "SMTPUTF8", "DSN")) -> ScriptedServer:
    """Deliver everything that is queued to a host with these extensions."""
    server = ScriptedServer(extensions=extensions)
    work = EmailQueueWork(relay(server), sessions=10)
    jobs = work.claim(10).jobs

    async def deliver():
        async with server:
            work._transport = relay(server)
            return [await work.perform(job, StubLease()) for job in jobs]

    work.record(run(deliver()))
    return server


def test_it_is_accepted_and_sent_with_smtputf8(api: Api):
    email_id = api.post("/emails/send", mail(to=f"\u7528\u6237 <{ADDRESS}>")).json()["id"]
    server = send_all()
    (sender,), (recipient,) = server.said("MAIL"), server.said("RCPT")
    assert " SMTPUTF8 BODY=8BITMIME RET=HDRS ENVID=" in sender
    assert recipient == f"RCPT TO:<{STORED}> NOTIFY=SUCCESS,FAILURE,DELAY"
    (source,) = server.messages
    assert f"<{STORED}>".encode() in source
    assert message_from_string(source.decode(), policy=policy.SMTPUTF8)["To"].addresses[0].addr_spec == STORED
    email = api.get(f"/emails/{email_id}").json()
    assert (email["status"], email["recipients"][0]["email"]) == ("sent", STORED)


def test_its_signature_is_valid(api: Api, alice):
    api.post("/emails/send", mail(to=ADDRESS))
    (source,) = send_all().messages
    key = alice.workspace.domains.get().dkim_keys.get()
    assert verify(source, domain="alice.example", public_keys={key.selector: key.public_key})


def test_a_host_without_smtputf8_bounces_it_with_5_6_7_and_suppresses_nothing(api: Api, settings):
    settings.SUPPRESS_ON = "every_bounce"
    api.post("/emails/send", mail(to=ADDRESS))
    server = send_all(extensions=("8BITMIME",))
    assert server.said("MAIL") == []
    recipient = Recipient.objects.get()
    assert (recipient.state, recipient.reason, recipient.enhanced_code) == ("bounced", "smtputf8_required", "5.6.7")
    assert not Suppression.objects.exists()


def test_an_ascii_recipient_of_the_same_email_needs_no_smtputf8(api: Api):
    api.post("/emails/send", mail(to=["ada@example.com", f"\u7528\u6237 <{ADDRESS}>"], cc=["ada@\u4f8b\u3048.jp"]))
    server = send_all(extensions=("8BITMIME",))
    assert [source.isascii() for source in server.messages] == [True, True]
    assert set(server.said("RCPT")) == {"RCPT TO:<ada@example.com>", "RCPT TO:<ada@xn--r8jz45g.jp>"}
    to = message_from_bytes(server.messages[0], policy=policy.default)["To"]
    assert [address.addr_spec for address in to.addresses] == ["ada@example.com"]
    assert to.groups[1].display_name == f"\u7528\u6237 <{STORED}>"


@each("field", ["from", "replyTo"])
def test_a_sender_is_ascii(api: Api, field):
    response = api.post("/emails/send", mail(**{field: "\u7528\u6237@alice.example"}))
    assert response.status_code == 422
    assert response.json()["errors"][0]["code"] == "invalid_email"


@each("spelling", [ADDRESS, STORED, "\u7528\u6237@XN--R8JZ45G.JP"])
def test_a_suppression_applies_to_every_spelling(api: Api, spelling):
    assert api.post("/suppressions", {"email": ADDRESS}).status_code == 201
    assert api.post("/suppressions", {"email": spelling}).status_code == 200
    assert api.post("/emails/send", mail(to=spelling)).json()["code"] == "recipient_suppressed"
    assert api.get("/suppressions", {"search": spelling}).json()["total"] == 1


@each("search", [ADDRESS, STORED, "\u6237@"])
def test_a_search_finds_every_spelling(api: Api, search):
    api.post("/emails/send", mail(to=ADDRESS))
    assert api.get("/emails", {"search": search}).json()["total"] == 1


def test_two_spellings_are_one_recipient_and_one_request(api: Api):
    decomposed, composed = "jo\u0308rg@example.com", "j\u00f6rg@example.com"
    api.post("/emails/send", mail(to=[decomposed, composed, "J\u00d6RG@example.com"]))
    assert [row.address for row in Recipient.objects.all()] == [composed]
    first = api.post("/emails/send", mail(to=decomposed), idempotency_key="k")
    again = api.post("/emails/send", mail(to=composed), idempotency_key="k")
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert Email.objects.count() == 2
