"""Received emails in the formats of other services: their own receivers read what is posted."""

import base64
import email.policy
import hashlib
import hmac
import json
import time
from email.parser import BytesParser

import pytest
from anymail.inbound import AnymailInboundMessage
from anymail.webhooks.mailgun import MailgunInboundWebhookView
from anymail.webhooks.postmark import PostmarkInboundWebhookView
from anymail.webhooks.sendgrid import SendGridInboundWebhookView
from django.test import RequestFactory
from svix.webhooks import Webhook as SvixWebhook

from core.lib.ids import to_uuid
from core.lib.worker.stages import Stage
from receiving.models import Message, ReceivedEmail
from receiving.services import delete_email
from tests.events.feed import publish_committed
from tests.receiving.builders import make_route, receive
from tests.rows import each
from tests.webhooks.conftest import pass_time, process_queue, queue_work, receiver
from tests.webhooks.receiver import Receiver, status
from webhooks.models import PendingDelivery, Webhook, WebhookDelivery, WebhookEvent
from webhooks.sending import large_bodies
from webhooks.sending.outcomes import AttemptResult
from webhooks.sending.post import internal_failure
from webhooks.services import create_webhook, send_test

__all__ = ["process_queue", "queue_work", "receiver"]

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:django-anymail has dropped", "ignore:Your Anymail webhooks are insecure"),
]

BYTES = bytes(range(256)) * 20
TEXT = "Grüße,\nwo ist \N{PACKAGE}?\n\n> quoted\n"
HTML = '<p>Grüße</p><img src="cid:logo@example.com">'
SOURCE = (
    'From: =?utf-8?q?L=C3=B6velace=2C_Ada?= <ada@example.com>\r\n'
    "To: Support <support+4711@alice.example>, bob@example.com\r\n"
    "Cc: Eve <eve@example.com>\r\nReply-To: ada+back@example.com\r\n"
    "Subject: =?utf-8?q?Wo_ist_4711=3F?=\r\nDate: Fri, 20 Nov 2026 09:12:29 +0000\r\nMessage-ID: <one@example.com>\r\n"
    "X-Spam-Status: No, forged\r\nX-Mailgun-Sflag: No\r\nMIME-Version: 1.0\r\n"
    'Content-Type: multipart/mixed; boundary="m"\r\n\r\n'
    '--m\r\nContent-Type: multipart/related; boundary="r"\r\n\r\n'
    '--r\r\nContent-Type: multipart/alternative; boundary="a"\r\n\r\n'
    f"--a\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{TEXT}\r\n"
    f"--a\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{HTML}\r\n--a--\r\n"
    "--r\r\nContent-Type: image/png; name=logo.png\r\nContent-ID: <logo@example.com>\r\n"
    "Content-Disposition: inline; filename=logo.png\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    f"{base64.encodebytes(BYTES[::-1]).decode()}\r\n--r--\r\n"
    "--m\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename*=UTF-8''p%C3%A4per%22.pdf\r\n"
    f"Content-Transfer-Encoding: base64\r\n\r\n{base64.encodebytes(BYTES).decode()}\r\n"
    "--m--\r\n"
).encode()  # fmt: skip
SPAM = {"score": 4.5, "threshold": 15.0, "isSpam": True, "symbols": ["R_SPF_ALLOW", "BAYES"]}
TO = "support+4711@alice.example"


@pytest.fixture
def posted(alice, receiving, receiver, process_queue):
    """Return a function that receives a message with an endpoint of a format; it returns the request and the secret."""

    def post(format_: str, source: bytes = SOURCE, **route):
        webhook, secret = create_webhook(alice.workspace, url=receiver.url(), events=["received"], format=format_)
        make_route(alice.workspace, webhook_ids=[webhook.id], **route)
        received = receive(source, TO)
        Message.objects.update(spam=SPAM)
        process_queue()
        assert WebhookDelivery.objects.get().status == "succeeded"
        (request,) = receiver.received
        return request, secret, received

    return post


def django_request(request):
    headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in request.headers.items()}
    return RequestFactory().post("/", request.body, request.header("content-type"), **headers)


def read(view, request) -> AnymailInboundMessage:
    given = django_request(request)
    view.validate_request(given)
    (event,) = view.parse_events(given)
    return event.message


def check_message(message: AnymailInboundMessage) -> None:
    """Compare what anymail read with SOURCE."""
    assert (message.from_email.addr_spec, message.from_email.display_name) == ("ada@example.com", "Lövelace, Ada")
    assert [address.addr_spec for address in message.to] == ["support+4711@alice.example", "bob@example.com"]
    assert [address.addr_spec for address in message.cc] == ["eve@example.com"]
    assert message["Reply-To"] == "ada+back@example.com"
    assert message["Message-ID"] == "<one@example.com>"
    assert message.date.isoformat() == "2026-11-20T09:12:29+00:00"
    assert message.subject == "Wo ist 4711?"
    assert message.text.strip() == TEXT.strip()
    assert message.html.strip() == HTML
    (attachment,) = message.attachments
    assert (attachment.get_content_type(), attachment.get_content_bytes()) == ("application/pdf", BYTES)
    (inline,) = message.content_id_map.values()
    assert ([*message.content_id_map], inline.get_content_bytes()) == (["logo@example.com"], BYTES[::-1])
    assert (inline.get_content_type(), inline.get_filename()) == ("image/png", "logo.png")


def check_envelope(message: AnymailInboundMessage) -> None:
    assert (message.envelope_sender, message.envelope_recipient) == ("ada@example.com", TO)


@pytest.mark.parametrize("attachments", ["link", "inline"])
def test_anymail_reads_postmarks_format(posted, attachments):
    request, _, received = posted("postmark", attachments=attachments)
    message = read(PostmarkInboundWebhookView(), request)
    check_message(message)
    check_envelope(message)
    assert message.attachments[0].get_filename() == 'päper".pdf'
    assert (message.spam_detected, message.spam_score) == (True, 4.5)
    assert message.stripped_text == "Grüße,\nwo ist \N{PACKAGE}?"
    payload = json.loads(request.body)
    assert payload["MessageID"] == str(to_uuid(received.id, prefix="inb_"))
    assert (payload["FromFull"], payload["MailboxHash"], payload["MessageStream"]) == (
        {"Email": "ada@example.com", "Name": "Lövelace, Ada", "MailboxHash": ""}, "4711", "inbound",
    )  # fmt: skip
    assert payload["ToFull"][0] == {"Email": TO, "Name": "Support", "MailboxHash": "4711"}
    assert (payload["Bcc"], payload["Date"]) == ("", "Fri, 20 Nov 2026 09:12:29 +0000")
    assert payload["Headers"][0] == {"Name": "Return-Path", "Value": "<ada@example.com>"}
    assert [entry["Value"] for entry in payload["Headers"] if entry["Name"].startswith("X-Spam")] == [
        "Yes", "4.5", "R_SPF_ALLOW,BAYES",
    ]  # fmt: skip
    assert [entry["ContentLength"] for entry in payload["Attachments"]] == [len(BYTES)] * 2


def test_a_recipient_that_no_header_names_is_postmarks_bcc(posted):
    request, _, _ = posted("postmark", b"From: ada@example.com\r\nTo: list@example.com\r\n\r\nHi\r\n")
    payload = json.loads(request.body)
    assert (payload["To"], payload["Bcc"]) == ("list@example.com", TO)
    assert payload["BccFull"] == [{"Email": TO, "Name": "", "MailboxHash": "4711"}]


def test_anymail_reads_sendgrids_format(posted):
    request, _, _ = posted("sendgrid")
    message = read(SendGridInboundWebhookView(), request)
    check_message(message)
    check_envelope(message)
    assert message.spam_score == 4.5
    form = django_request(request).POST
    assert json.loads(form["envelope"]) == {"to": [TO], "from": "ada@example.com"}
    assert (form["sender_ip"], form["SPF"], form["attachments"]) == ("192.0.2.7", "none", "2")
    assert {*json.loads(form["charsets"]).values()} == {"UTF-8"}
    assert json.loads(form["attachment-info"])["attachment2"]["filename"] == 'päper".pdf'
    assert json.loads(form["content-ids"]) == {"logo@example.com": "attachment1"}


def test_anymail_verifies_and_reads_mailguns_format(posted):
    request, secret, _ = posted("mailgun", attachments="inline")
    view = MailgunInboundWebhookView(webhook_signing_key=secret)
    message = read(view, request)
    check_message(message)
    check_envelope(message)
    assert (message.spam_detected, message.spam_score) == (True, 4.5)
    assert message.stripped_text == "Grüße,\nwo ist \N{PACKAGE}?"
    form = django_request(request).POST
    assert (form["recipient"], form["sender"], form["subject"]) == (TO, "ada@example.com", "Wo ist 4711?")
    assert abs(time.time() - int(form["timestamp"])) < 60
    assert form["from"] == form["From"] == '"Lövelace, Ada" <ada@example.com>'
    assert ["X-Mailgun-Sflag", "No"] not in json.loads(form["message-headers"])


def test_mailguns_format_has_links_if_the_route_says_so(posted):
    request, _, _ = posted("mailgun")
    form = django_request(request).POST
    first, second = json.loads(form["attachments"])
    assert (first["name"], first["content-type"], first["size"]) == ("logo.png", "image/png", len(BYTES))
    assert second["url"].startswith("http://127.0.0.1:8000/inbound/")
    assert json.loads(form["content-id-map"]) == {"<logo@example.com>": first["url"]}
    assert "attachment-count" not in form
    assert not django_request(request).FILES


def original(received: ReceivedEmail, source: bytes) -> None:
    """Check that a source is the one that was received, behind fields of ours."""
    header, _, body = SOURCE.partition(b"\r\n\r\n")
    kept = b"\r\n".join(line for line in header.split(b"\r\n") if not line.startswith((b"X-Spam", b"X-Mailgun")))
    assert source.endswith(body)
    for line in kept.split(b"\r\n"):
        assert line in source
    assert b"Received: from mx.example.com" in source


def test_the_source_is_in_the_fields_that_rails_reads(posted):
    """Action Mailbox: `RawEmail` and `OriginalRecipient`; the message has the bytes that were received."""
    request, _, received = posted("postmark", include_raw=True)
    payload = json.loads(request.body)
    original(received, payload["RawEmail"].encode())
    assert (payload["OriginalRecipient"], payload["Attachments"]) == (TO, [])
    message = read(PostmarkInboundWebhookView(), request)
    check_message(message)
    check_envelope(message)
    assert (message.spam_detected, message.spam_score) == (True, 4.5)


def test_sendgrids_format_with_the_source(posted):
    """Action Mailbox reads `email` and `envelope`."""
    request, _, received = posted("sendgrid", include_raw=True)
    form = django_request(request)
    assert {"text", "headers", "attachments"}.isdisjoint(form.POST)
    original(received, form_bytes(request)["email"])
    message = read(SendGridInboundWebhookView(), request)
    check_message(message)
    check_envelope(message)


def test_mailguns_format_with_the_source(posted):
    """Action Mailbox reads `body-mime` and verifies the signature within two minutes."""
    request, secret, received = posted("mailgun", include_raw=True)
    form = django_request(request).POST
    original(received, form_bytes(request)["body-mime"])
    expected = hmac.new(secret.encode(), f"{form['timestamp']}{form['token']}".encode(), hashlib.sha256).hexdigest()
    assert form["signature"] == expected
    message = read(MailgunInboundWebhookView(webhook_signing_key=secret), request)
    check_message(message)
    check_envelope(message)
    assert message.spam_detected


def form_bytes(request) -> dict[str, bytes]:
    """Return the fields of a form as Python's own reader of MIME sees them."""
    whole = f"Content-Type: {request.header('content-type')}\r\n\r\n".encode() + request.body
    parts = BytesParser(policy=email.policy.HTTP).parsebytes(whole).iter_parts()
    return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in parts}


def test_bytes_that_are_not_utf_8_stay_as_they_are_in_forms(posted):
    source = b"From: ada@example.com\r\nSubject: 8bit\r\n\r\nGr\xfc\xdfe\r\n\xff\r\n"
    request, _, _ = posted("mailgun", source, include_raw=True)
    assert b"\r\n\r\nGr\xfc\xdfe\r\n\xff\r\n" in request.body


def test_svix_verifies_resends_format(posted):
    request, secret, received = posted("resend")
    SvixWebhook(secret).verify(request.body, {key.lower(): value for key, value in request.headers.items()})
    payload = json.loads(request.body)
    assert payload["type"] == "email.received"
    data = payload["data"]
    assert data["email_id"] == str(to_uuid(received.id, prefix="inb_"))
    assert (data["from"], data["to"]) == ('"Lövelace, Ada" <ada@example.com>', [TO, "bob@example.com"])
    assert (data["cc"], data["bcc"], data["received_for"]) == (["eve@example.com"], [], [TO])
    assert (data["message_id"], data["subject"]) == ("<one@example.com>", "Wo ist 4711?")
    logo, paper = data["attachments"]
    members = ("filename", "content_disposition", "content_id")
    assert [logo[name] for name in members] == ["logo.png", "inline", "logo@example.com"]
    assert [paper[name] for name in members] == ['päper".pdf', "attachment", None]


@each("format_", ["postmark", "sendgrid", "resend", "mailgun", "standard"])
@each("route", [{}, {"include_raw": True}, {"attachments": "inline"}])
def test_every_attempt_has_the_same_bytes(alice, receiving, receiver: Receiver, process_queue, format_, route):
    receiver.received.clear()
    webhook, _ = create_webhook(alice.workspace, url=receiver.url(), events=["received"], format=format_)
    route = make_route(alice.workspace, **route)
    receive(SOURCE, TO)
    receiver.answer = status(500)
    process_queue()
    # Routes are read when a message arrives.
    route.delete()
    pass_time(hours=1)
    receiver.answer = status(200)
    process_queue()
    first, second = receiver.received
    assert first.header("webhook-id") == second.header("webhook-id")
    assert first.header("content-type") == second.header("content-type")
    if format_ == "mailgun":
        # Its receivers refuse a timestamp that is older than two minutes.
        signed = {"timestamp", "signature"}
        fields = [{*form_bytes(request).items()} for request in (first, second)]
        assert {name for name, _ in fields[0] ^ fields[1]} <= signed
    else:
        assert first.body == second.body
    assert webhook.format == format_


def test_a_body_is_never_stored(posted):
    posted("postmark", attachments="inline")
    assert base64.b64encode(BYTES)[:100].decode() not in WebhookEvent.objects.get().body


def test_403_ends_the_attempts_of_postmarks_format_alone(alice, receiving, receiver, process_queue):
    hooks = {
        name: create_webhook(alice.workspace, url=receiver.url(f"/{name}"), events=["received"], format=name)[0]
        for name in ("postmark", "sendgrid")
    }
    make_route(alice.workspace)
    receive(SOURCE, TO)
    receiver.answer = status(403)
    process_queue()
    states = {name: WebhookDelivery.objects.get(webhook=hook).status for name, hook in hooks.items()}
    assert states == {"postmark": "exhausted", "sendgrid": "pending"}
    assert Webhook.objects.filter(active=True).count() == 2


@each("format_", ["postmark", "sendgrid", "resend", "mailgun"])
def test_a_deleted_email_has_a_body_that_says_so(alice, receiving, receiver, process_queue, format_):
    receiver.received.clear()
    create_webhook(alice.workspace, url=receiver.url(), events=["received"], format=format_)
    make_route(alice.workspace)
    received = receive(SOURCE, TO)
    publish_committed()
    ReceivedEmail.objects.filter(id=received.id).delete()
    process_queue()
    (request,) = receiver.received
    if format_ == "resend":
        # Without the stored content: its receivers fetch it.
        assert json.loads(request.body)["data"]["email_id"] == str(to_uuid(received.id, prefix="inb_"))
    else:
        assert json.loads(request.body)["data"] == {"id": received.id, "deleted": True}
        assert request.header("content-type") == "application/json"


def test_deletion_ends_the_deliveries(alice, receiving, receiver, process_queue):
    create_webhook(alice.workspace, url=receiver.url(), events=["received"], format="sendgrid")
    make_route(alice.workspace)
    received = receive(SOURCE, TO)
    publish_committed()
    delete_email(received)
    process_queue()
    assert receiver.received == []


@each("format_", ["postmark", "sendgrid", "resend", "mailgun"])
def test_a_test_event_can_be_read(alice, receiver, process_queue, format_):
    receiver.received.clear()
    webhook, secret = create_webhook(alice.workspace, url=receiver.url(), events=["received"], format=format_)
    send_test(webhook)
    process_queue()
    (request,) = receiver.received
    views = {
        "postmark": PostmarkInboundWebhookView,
        "sendgrid": SendGridInboundWebhookView,
        "mailgun": lambda: MailgunInboundWebhookView(webhook_signing_key=secret),
    }
    if format_ == "resend":
        assert json.loads(request.body)["type"] == "email.received"
    else:
        message = read(views[format_](), request)
        assert message.subject == "A test of your webhook"
        assert message.from_email.addr_spec == "ada@example.com"
        assert message.text == "Hello!"


def test_mailguns_format_has_no_other_events(key):
    hook = {"url": "https://example.com/hook", "format": "mailgun"}
    refused = key.post("/webhooks", {**hook, "events": ["received", "delivered"]})
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert (error["field"], error["code"]) == ("events[1]", "event_not_in_format")
    assert "`delivered`" in error["detail"]
    created = key.post("/webhooks", {**hook, "events": ["received"]}).json()
    path = f"/webhooks/{created['id']}"
    assert key.patch(path, {"events": ["bounced"]}).json()["errors"][0]["code"] == "event_not_in_format"
    other = key.post("/webhooks", {**hook, "events": ["bounced"], "format": "standard"}).json()
    assert key.patch(f"/webhooks/{other['id']}", {"format": "mailgun"}).status_code == 422
    assert key.patch(path, {"format": "standard", "events": ["bounced"]}).status_code == 200


def test_header_names_of_files_cannot_leave_their_part(posted):
    source = (
        b"From: ada@example.com\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\nContent-Type: text/x<y;\r\n"
        b" charset=x\r\nContent-Disposition: attachment; filename*=UTF-8''a%0D%0AX-Evil%3A%201%22%00.txt\r\n\r\n1"
        b"\r\n--m--\r\n"
    )
    request, _, _ = posted("sendgrid", source)
    form = django_request(request)
    (file,) = form.FILES.values()
    assert file.read() == b"1"
    assert file.content_type == "application/octet-stream"
    assert b"\r\nX-Evil" not in request.body


@pytest.mark.parametrize(("memory", "share", "admitted"), [(300_000, 10**9, 2), (10**9, 300_000, 4)])
def test_bodies_wait_for_the_memory_of_others(
    alice, receiving, receiver, queue_work, process_queue, monkeypatch, memory, share, admitted
):
    """Waiting uses no attempt. A body is expected to have 270,000 bytes, and has 16,000 when it is rendered."""
    monkeypatch.setattr(large_bodies, "MEMORY_BYTES", memory)
    monkeypatch.setattr(large_bodies, "ENDPOINT_BYTES", share)
    for name in ("postmark", "sendgrid"):
        create_webhook(alice.workspace, url=receiver.url(f"/{name}"), events=["received"], format=name)
    make_route(alice.workspace)
    for number in range(3):
        receive(SOURCE + str(number).encode(), TO)
    publish_committed()
    jobs = queue_work.claim(16).jobs
    assert len(jobs) == admitted
    waiting = PendingDelivery.objects.filter(stage=Stage.WAITING)
    assert [*waiting.values_list("attempts", flat=True)] == [0] * (6 - admitted)
    queue_work.record([AttemptResult(job.claim, internal_failure("lease_lost")) for job in jobs])
    for _ in range(3):
        pass_time(seconds=10)
        process_queue()
    assert len(receiver.received) == 6
    counts = WebhookDelivery.objects.filter(status="succeeded").values_list("attempt_count", flat=True)
    assert sorted(counts) == [1] * (6 - admitted) + [2] * admitted


def test_a_body_that_cannot_be_rendered_stops_no_other(alice, receiving, receiver, process_queue, monkeypatch):
    for name in ("postmark", "sendgrid"):
        create_webhook(alice.workspace, url=receiver.url(f"/{name}"), events=["received"], format=name)
    make_route(alice.workspace)
    receive(SOURCE, TO)
    monkeypatch.setattr("interfaces.compat.postmark.receiving.format.inbound_payload", lambda _: 1 / 0)
    process_queue()
    assert [request.path for request in receiver.received] == ["/sendgrid"]
    assert WebhookDelivery.objects.get(webhook__format="postmark").error == "internal_error"
