"""Provider webhooks through django-anymail's views: stored first, matched later, idempotent."""

import base64
import json

import pytest
from anymail.signals import AnymailTrackingEvent, EventType, RejectReason, tracking
from django.test import Client
from django.utils import timezone

from core.delivery.transports.transports_file import TransportRoute, Transports, TransportSpec
from emails.models import Recipient
from events.models import Event
from interfaces.inbound import processing
from interfaces.inbound.models import ProviderReport
from interfaces.inbound.processing import process_reports
from suppressions.models import Suppression
from tests.emails.builders import event_kinds
from tests.interfaces.inbound.fixtures import claimed_recipient, sent_recipient
from tests.plans import plan_of, prefer_indexes
from tests.rows import each

pytestmark = pytest.mark.django_db

SECRET = "postrider:a-long-secret-of-a-webhook"
MESSAGE_ID = "883953f4-6105-42a2-a16a-77a8eac79483"


@pytest.fixture(autouse=True)
def _secret(settings):
    settings.ANYMAIL_WEBHOOK_SECRET = SECRET


@pytest.fixture
def recipient(workspace):
    recipient = sent_recipient(workspace)
    Recipient.objects.update(provider_message_id=MESSAGE_ID)
    return recipient


def post(body, *, secret=SECRET, provider="postmark"):
    """Call the webhook as Postmark does, with one event per call."""
    headers = {"authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"} if secret else {}
    client = Client(raise_request_exception=False)
    return client.post(f"/anymail/{provider}/tracking/", json.dumps(body), "application/json", headers=headers)


def last_payload(body, *, provider="postmark"):
    """Call the webhook, process its event, and return the payload of what was recorded."""
    assert post(body, provider=provider).status_code == 200
    process_reports()
    return Event.objects.exclude(email=None).last().payload


def event(record_type, **fields):
    return {"RecordType": record_type, "MessageID": MESSAGE_ID, "Recipient": "ada@example.com", **fields}


DELIVERY = event("Delivery", DeliveredAt="2026-11-20T12:00:00Z", Details="smtp;250 2.0.0 OK")
HARD = event(
    "Bounce",
    Email="ada@example.com",
    ID=901,
    Type="HardBounce",
    TypeCode=1,
    BouncedAt="2026-11-20T12:00:00Z",
    Details="smtp;550 5.1.1 The email account that you tried to reach does not exist.",
)
SOFT = {**HARD, "ID": 902, "Type": "SoftBounce", "TypeCode": 4096, "Details": "smtp;552 5.2.2 mailbox full"}
SPAM = event("SpamComplaint", Email="ada@example.com", ID=903, Type="SpamComplaint", BouncedAt="2026-11-20T13:00:00Z")
OPEN = event("Open", ReceivedAt="2026-11-20T14:00:00Z", UserAgent="Mail/1")
CLICK = event("Click", ReceivedAt="2026-11-20T15:00:00Z", OriginalLink="https://alice.example/a?b=c")
UNSUBSCRIBE = event(
    "SubscriptionChange", ChangedAt="2026-11-20T16:00:00Z", SuppressSending=True, SuppressionReason="ManualSuppression"
)


@each(("body", "kinds", "state", "reason"), [
    (DELIVERY, ["delivered"], "delivered", None), (HARD, ["bounced"], "bounced", "bounce"),
    (SOFT, ["bounced"], "bounced", None), (SPAM, ["complained"], "sent", "complaint"),
    (OPEN, ["opened"], "opened", None), (CLICK, ["clicked"], "clicked", None),
    (UNSUBSCRIBE, ["unsubscribed"], "sent", "unsubscribe"),
])  # fmt: skip
def test_each_event_is_recorded_as_its_kind(recipient, body, kinds, state, reason):
    assert post(body).status_code == 200
    process_reports()
    recipient.refresh_from_db()
    assert (event_kinds()[2:], recipient.state) == (kinds, state)
    assert list(Suppression.objects.values_list("reason", flat=True)) == ([reason] if reason else [])


def test_details_come_from_the_reply_of_the_remote_host(recipient):
    payload = last_payload(HARD)
    assert (payload["code"], payload["enhancedCode"], payload["reason"]) == (550, "5.1.1", "unknown_user")
    assert "does not exist" in payload["message"]


def test_a_refusal_that_names_the_sender_does_not_suppress(recipient):
    refusal = {**HARD, "Details": "smtp;550 5.1.1 <hi@alice.example>: User unknown"}
    assert last_payload(refusal)["reason"] == "policy"
    assert not Suppression.objects.exists()


def test_a_click_records_its_url(recipient):
    assert last_payload(CLICK)["url"] == "https://alice.example/a?b=c"


def test_an_event_is_stored_before_the_response_and_processed_afterwards(recipient):
    assert post(HARD).status_code == 200
    assert ProviderReport.objects.get().verdict == ""
    recipient.refresh_from_db()
    assert recipient.state == "sent"


def test_an_event_before_its_message_id_is_recorded_waits(workspace):
    recipient, _ = claimed_recipient(workspace)
    post(HARD)
    process_reports()
    row = ProviderReport.objects.get()
    assert row.processed_at is None
    assert row.due_at > timezone.now()
    Recipient.objects.update(provider_message_id=MESSAGE_ID)
    ProviderReport.objects.update(due_at=timezone.now())
    process_reports()
    recipient.refresh_from_db()
    assert recipient.state == "bounced"


def test_an_event_with_an_unknown_message_id_is_given_up_after_a_day(workspace):
    post(HARD)
    ProviderReport.objects.update(received_at=timezone.now() - processing.UNMATCHED_EVENT_LIFETIME)
    process_reports()
    assert ProviderReport.objects.get().verdict == "not_ours"


def test_a_repeated_event_is_stored_once(recipient):
    for body in (DELIVERY, HARD, SPAM) * 2:
        assert post(body).status_code == 200
        process_reports()
    recipient.refresh_from_db()
    assert ProviderReport.objects.count() == 3
    assert recipient.state == "bounced"
    assert sorted(event_kinds()[2:]) == ["bounced", "complained", "delivered"]


@each("secret", [None, "postrider:wrong", "x", SECRET + "x"])
def test_without_the_secret_nothing_is_stored(recipient, secret):
    assert post(HARD, secret=secret).status_code == 400
    assert not ProviderReport.objects.exists()


def test_without_a_configured_secret_the_endpoint_is_404(recipient, settings):
    settings.ANYMAIL_WEBHOOK_SECRET = ""
    assert post(HARD).status_code == 404
    assert post(HARD, secret=None).status_code == 404


def test_an_unknown_provider_is_404(recipient):
    assert post(HARD, provider="nobody").status_code == 404


def test_a_body_of_many_megabytes_is_refused(recipient):
    assert post({**HARD, "Content": "x" * 3_000_000}).status_code in {400, 413}
    assert not ProviderReport.objects.exists()


@each("body", [{}, [], "x", {"RecordType": "Bounce"}, {**HARD, "MessageID": None}])
def test_an_invalid_body_stores_nothing(recipient, body):
    assert post(body).status_code in {200, 400, 500}
    assert not ProviderReport.objects.exists()


def test_the_text_of_a_provider_is_escaped_and_cut(recipient):
    message = last_payload({**HARD, "Details": "550 5.1.1 \0\x1b[31m<script>" + "x" * 10_000})["message"]
    assert "\0" not in message
    assert len(message) < 1_100


def test_an_address_that_the_provider_calls_invalid_is_suppressed(recipient):
    body = {
        "event": "invalid_email",
        "email": "ada@example.com",
        "message-id": MESSAGE_ID,
        "ts_epoch": 1_763_640_000_000,
    }
    assert last_payload(body, provider="brevo")["reason"] == "bad_address"
    assert event_kinds()[2:] == ["bounced"]
    assert Suppression.objects.get().reason == "bounce"


@each(("refusal", "kind", "suppressed"), [
    (RejectReason.BOUNCED, "bounced", True),
    (RejectReason.BLOCKED, "failed", False),
    (RejectReason.SPAM, "failed", False),
])  # fmt: skip
def test_a_rejection_by_the_provider(recipient, refusal, kind, suppressed):
    tracking_event = AnymailTrackingEvent(event_type=EventType.REJECTED, message_id=MESSAGE_ID, reject_reason=refusal)
    tracking.send(sender=None, event=tracking_event, esp_name="Test ESP")
    process_reports()
    assert event_kinds()[2:] == [kind]
    assert Event.objects.exclude(email=None).last().payload["reason"] == "provider_refused"
    assert Suppression.objects.exists() is suppressed


def test_finding_a_message_id_uses_its_index(db):
    prefer_indexes()
    plan = plan_of("SELECT id FROM emails_recipient WHERE provider_message_id IN ('a', 'b')")
    assert "recipient_of_provider" in plan


class TestNamedTransports:
    """Two transports of one provider: each has its path, its secret and its messages."""

    @pytest.fixture(autouse=True)
    def _transports(self, settings):
        specs = {
            name: TransportSpec(
                name=name,
                kind="anymail",
                backend="anymail.backends.postmark.EmailBackend",
                options={"server_token": "x", "webhook_secret": f"{name}:a-long-secret-of-{name}"},
            )
            for name in ("first", "second")
        }
        specs["own"] = TransportSpec(name="own", kind="direct")
        settings.TRANSPORTS = Transports(
            specs, {"default": TransportRoute("default", (*specs,))}, {"default": ("default",)}
        )
        settings.ANYMAIL_WEBHOOK_SECRET = ""

    def post(self, name, *, secret=None, provider="postmark"):
        return post(DELIVERY, secret=secret or f"{name}:a-long-secret-of-{name}", provider=f"{name}/{provider}")

    def test_ids_are_looked_up_among_the_messages_of_the_transport(self, recipient):
        Recipient.objects.update(transport="first")
        assert self.post("second").status_code == 200
        process_reports()
        assert event_kinds()[-1] == "sent"
        assert self.post("first").status_code == 200
        process_reports()
        assert event_kinds()[-1] == "delivered"

    def test_the_same_event_of_two_transports_is_two_reports(self, recipient):
        self.post("first"), self.post("second"), self.post("first")
        assert sorted(ProviderReport.objects.values_list("transport", flat=True)) == ["first", "second"]

    def test_the_secret_of_another_transport_is_refused(self, recipient):
        assert self.post("first", secret="second:a-long-secret-of-second").status_code == 400
        assert not ProviderReport.objects.exists()

    @each(("name", "provider"), [("none", "postmark"), ("own", "postmark"), ("first", "mailgun")])
    def test_other_paths_do_not_exist(self, name, provider):
        assert self.post(name, provider=provider).status_code == 404

    def test_messages_without_a_name_belong_to_default(self, recipient, settings):
        specs = {"default": settings.TRANSPORTS.transports["first"]}
        settings.TRANSPORTS = Transports(
            specs, {"default": TransportRoute("default", ("default",))}, {"default": ("default",)}
        )
        assert self.post("default", secret="first:a-long-secret-of-first").status_code == 200
        process_reports()
        assert event_kinds()[-1] == "delivered"

    def test_the_path_without_a_name_finds_the_messages_of_any(self, recipient, settings):
        settings.ANYMAIL_WEBHOOK_SECRET = SECRET
        Recipient.objects.update(transport="first")
        assert post(DELIVERY).status_code == 200
        process_reports()
        assert event_kinds()[-1] == "delivered"
