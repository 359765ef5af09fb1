"""Formats of other services: payloads and signatures that their own receivers accept."""

import base64
import json
import time

import pytest
from anymail.webhooks.postmark import PostmarkTrackingWebhookView
from anymail.webhooks.resend import ResendTrackingWebhookView
from anymail.webhooks.sendgrid import SendGridTrackingWebhookView
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from django.test import RequestFactory
from standardwebhooks import Webhook as StandardWebhook
from svix.webhooks import Webhook as SvixWebhook

from core.lib.ids import new_id, to_uuid
from events.kinds import WEBHOOK_KINDS
from tests.conftest import Api
from tests.rows import each
from webhooks.formats import find_format, format_headers, render_body
from webhooks.samples import SAMPLES
from webhooks.sending.signing import new_secret

EMAIL_ID = new_id()
# anymail finds the message of an event of SendGrid by the metadata that its backend adds.
ANYMAIL_ID = str(to_uuid(EMAIL_ID))
NOW = 1_790_000_000
# The types that anymail reads from each event, by format.
NORMALIZED = {
    "resend": {"sent": "sent", "delivered": "delivered", "bounced": "bounced", "deferred": "deferred",
               "opened": "opened", "clicked": "clicked", "complained": "complained", "failed": "unknown",
               "unsubscribed": "unknown"},
    "postmark": {"sent": "unknown", "delivered": "delivered", "bounced": "bounced", "deferred": "deferred",
                 "opened": "opened", "clicked": "clicked", "complained": "complained", "failed": "rejected",
                 "unsubscribed": "unsubscribed"},
    "sendgrid": {"sent": "queued", "delivered": "delivered", "bounced": "bounced", "deferred": "deferred",
                 "opened": "opened", "clicked": "clicked", "complained": "complained", "failed": "rejected",
                 "unsubscribed": "unsubscribed"},
}  # fmt: skip
FORMATTED_KINDS = sorted(NORMALIZED["resend"])
VIEWS = {
    "resend": ResendTrackingWebhookView,
    "postmark": PostmarkTrackingWebhookView,
    "sendgrid": SendGridTrackingWebhookView,
}
SECRET_OPTIONS = {
    "resend": lambda secret: {"signing_secret": secret},
    "postmark": lambda _: {},
    "sendgrid": lambda secret: {"tracking_webhook_verification_key": verification_key(secret)},
}


verification_key = find_format("sendgrid").verification_key


def test_a_body_has_letters_not_escapes():
    body = stored_body("delivered", subject="Grüße")
    assert "Grüße".encode() in render_body(body, format_="resend")


def stored_body(kind: str, **fields) -> str:
    data = {
        "emailId": EMAIL_ID, "to": "ada@example.com", "from": "hi@alice.example", "subject": "Hi",
        "tags": ["category:welcome"], "metadata": {"order": "7", "anymail_id": ANYMAIL_ID}, **SAMPLES[kind], **fields,
    }  # fmt: skip
    event = {"id": new_id("evt_"), "type": f"email.{kind}", "event": kind, "createdAt": "2026-11-21T06:20:00.412Z"}
    return json.dumps({**event, "data": data})


def posted(kind: str, format_: str, secret: str, *, now: int = NOW, **fields) -> tuple[bytes, dict[str, str]]:
    body = render_body(stored_body(kind, **fields), format_=format_)
    return body, format_headers(body, format_=format_, message_id="evt_1", timestamp=now, keys=[secret])


@pytest.mark.filterwarnings("ignore:django-anymail has dropped", "ignore:Your Anymail webhooks are insecure")
@each("kind", FORMATTED_KINDS)
@each("format_", NORMALIZED)
def test_anymails_tracking_view_reads_the_event(format_, kind):

    secret = new_secret()
    body, headers = posted(kind, format_, secret, now=int(time.time()))
    with_headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    request = RequestFactory().post("/", body, "application/json", **with_headers)
    # Not through the view's signal, which the inbound app of this service receives too.
    view = VIEWS[format_](**SECRET_OPTIONS[format_](secret))
    view.validate_request(request)
    (event,) = view.parse_events(request)
    assert event.event_type == NORMALIZED[format_][kind]
    assert (event.recipient, event.message_id) == ("ada@example.com", str(to_uuid(EMAIL_ID)))
    if kind == "clicked":
        assert event.click_url == "https://example.com/"


@each("format_", NORMALIZED)
def test_a_format_has_the_events_of_recipients(format_):
    # Received emails: tests/receiving/test_webhook_formats.py.
    assert {*find_format(format_).kinds} == {*FORMATTED_KINDS, "received"}


def test_a_resend_event_verifies_with_svix_and_with_standard_webhooks():

    secret = new_secret()
    body, headers = posted("bounced", "resend", secret, now=int(time.time()))
    SvixWebhook(secret).verify(body, headers)
    StandardWebhook(secret).verify(body, headers)
    payload = json.loads(body)
    assert (payload["type"], payload["data"]["email_id"]) == ("email.bounced", str(to_uuid(EMAIL_ID)))
    assert payload["data"]["bounce"]["type"] == "Permanent"
    assert payload["data"]["tags"] == {"category": "welcome"}


def resend_data(kind: str, **fields) -> dict:
    return json.loads(posted(kind, "resend", new_secret(), **fields)[0])["data"]


def test_details_of_resends_events_have_the_members_that_its_clients_declare():
    assert resend_data("bounced")["bounce"] == {
        "message": "5.1.1 No such user here", "type": "Permanent", "subType": "General",
        "diagnosticCode": ["smtp; 550 5.1.1 No such user here"],
    }  # fmt: skip
    assert resend_data("bounced", reason="mailbox_full")["bounce"]["subType"] == "MailboxFull"
    assert resend_data("clicked")["click"] == {
        "link": "https://example.com/", "timestamp": "2026-11-21T06:20:00.412Z", "ipAddress": "", "userAgent": "",
    }  # fmt: skip
    assert resend_data("delivered", messageId="<a@alice.example>")["message_id"] == "<a@alice.example>"
    added = resend_data("unsubscribed")
    assert (added["email"], added["origin"], added["source_id"]) == ("ada@example.com", "manual", ANYMAIL_ID)


def test_events_in_sendgrids_format_have_its_members():
    reader = {"ip": "", "useragent": ""}
    members = {"opened": reader, "clicked": {**reader, "url_offset": {"index": 0, "type": "html"}}}
    for kind in ("sent", "deferred", "delivered", "bounced", *members):
        (payload,) = json.loads(posted(kind, "sendgrid", new_secret(), messageId="<a@alice.example>")[0])
        assert payload["smtp-id"] == "<a@alice.example>"
        assert payload.items() >= members.get(kind, {}).items()
    (earlier,) = json.loads(posted("delivered", "sendgrid", new_secret())[0])
    assert "smtp-id" not in earlier, "a body of an earlier version"


def test_opens_and_clicks_in_postmarks_format_have_its_members():
    opened, again, clicked = (
        json.loads(posted(kind, "postmark", new_secret(), **fields)[0])
        for kind, fields in (("opened", {}), ("opened", {"first": False}), ("clicked", {}))
    )
    program = {"Name": "", "Company": "", "Family": ""}
    reader = {"Client": program, "OS": program, "Platform": "Unknown", "UserAgent": "", "Geo": {}}
    for payload in (opened, clicked):
        assert reader.items() <= payload.items()
    assert (opened["FirstOpen"], again["FirstOpen"], opened["ReadSeconds"]) == (True, False, 0)
    assert "FirstOpen" not in clicked


def test_a_suppressed_recipient_is_named_as_each_service_does():
    reason = {"reason": "recipient_suppressed"}
    resend, postmark, sendgrid = (
        json.loads(posted("failed", format_, new_secret(), **reason)[0])
        for format_ in ("resend", "postmark", "sendgrid")
    )
    assert resend["type"] == "email.suppressed"
    assert postmark["Type"] == "ManuallyDeactivated"
    assert (sendgrid[0]["event"], sendgrid[0]["reason"]) == ("dropped", "Bounced Address")


def test_an_expired_email_is_named_as_each_service_does():
    postmark, sendgrid = (
        json.loads(posted("failed", format_, new_secret(), reason="expired")[0]) for format_ in ("postmark", "sendgrid")
    )
    assert (postmark["RecordType"], postmark["Type"], postmark["Inactive"]) == ("Bounce", "Transient", False)
    assert (sendgrid[0]["event"], sendgrid[0]["reason"]) == ("dropped", "Expired")


def test_a_sendgrid_batch_is_signed_with_the_key_of_the_endpoint():
    secret = new_secret()
    body, headers = posted("delivered", "sendgrid", secret)
    (event,) = json.loads(body)
    assert (event["event"], event["order"], event["category"]) == ("delivered", "7", ["category:welcome"])
    public = serialization.load_der_public_key(base64.b64decode(verification_key(secret)))
    signature = base64.b64decode(headers["x-twilio-email-event-webhook-signature"])
    assert isinstance(public, ec.EllipticCurvePublicKey)
    public.verify(signature, str(NOW).encode() + body, ec.ECDSA(SHA256()))
    with pytest.raises(InvalidSignature):
        public.verify(signature, str(NOW).encode() + body + b" ", ec.ECDSA(SHA256()))
    assert verification_key(new_secret()) != verification_key(secret)


def test_metadata_cannot_replace_members_of_a_sendgrid_event():
    (event,) = json.loads(posted("delivered", "sendgrid", new_secret(), metadata={"event": "bounce", "n": 1})[0])
    assert (event["event"], event["n"]) == ("delivered", "1")


@each(("data", "expected"), [({}, "outbound"), ({"stream": "news"}, "news")])
def test_postmarks_format_names_the_stream(data, expected):
    for kind in FORMATTED_KINDS:
        payload = json.loads(render_body(stored_body(kind, **data), format_="postmark"))
        assert payload["MessageStream"] == expected


@each("format_", ["resend", "postmark", "sendgrid"])
@each("kind", sorted({*WEBHOOK_KINDS} - {*FORMATTED_KINDS, "received"}))
def test_an_event_that_a_service_does_not_have_keeps_the_standard_format(format_, kind):
    # The format of the endpoint was changed after the event.
    body = json.dumps({"id": new_id("evt_"), "type": kind, "event": kind, "data": {}})
    assert render_body(body, format_=format_) == body.encode()


def test_the_same_event_has_the_same_bytes_on_every_attempt():
    for format_ in ("standard", "resend", "postmark", "sendgrid"):
        body = stored_body("bounced")
        assert render_body(body, format_=format_) == render_body(body, format_=format_)


@pytest.mark.django_db
def test_the_format_of_an_endpoint_is_set_and_changed(api: Api):
    hook = {"url": "https://example.com/hook", "events": ["delivered"]}
    created = api.post("/webhooks", {**hook, "format": "sendgrid"}).json()
    assert created["format"] == "sendgrid"
    assert created["verificationKey"] == verification_key(created["secret"])
    path = f"/webhooks/{created['id']}"
    assert api.patch(path, {"format": "postmark"}).json()["format"] == "postmark"
    assert api.post("/webhooks", hook).json()["format"] == "standard"
    assert api.post("/webhooks", {**hook, "format": "mailjet"}).status_code == 422
