"""Anymail transport, tested with Postmark's backend and a server that responds like Postmark."""

import base64
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from anymail.backends.test import EmailBackend

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, SuppressOn
from core.delivery.message.compose import File, OutgoingMessage
from core.delivery.transports.anymail import AnymailTransport
from core.delivery.transports.interface import LeaseLost
from core.delivery.transports.provider_messages import BackendUnsuitable, Features, check_backend
from core.lib.email_addresses import Address
from tests.core.delivery.provider import Provider, accept, hang_up, refuse, sleep
from tests.core.delivery.relaying import run
from tests.core.delivery.scripted import StubLease, outgoing_message
from tests.rows import each

POSTMARK = "anymail.backends.postmark.EmailBackend"
OUTGOING_MESSAGE = outgoing_message(
    to=(Address("Ada Lovelace", "ada@example.com"), Address("", "bob@example.com")),
    cc=(Address("Cäcilie", "cc@example.com"),),
    reply_to=(Address("", "help@example.org"),),
    headers=(
        ("List-Unsubscribe", "<https://example.org/u/1>"),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
    ),
    files=(File("a.pdf", "application/pdf", b"%PDF"), File("logo.png", "image/png", b"\x89PNG", "logo")),
)


@contextmanager
def transport_to(provider: Provider, **options: Any) -> Iterator[AnymailTransport]:
    with provider:
        given = {"server_token": "secret", "api_url": provider.url, **options}
        transport = AnymailTransport(POSTMARK, threads=4, options=given)
        try:
            yield transport
        finally:
            transport.close()


def deliver(provider: Provider, message: OutgoingMessage = OUTGOING_MESSAGE, **options: Any) -> DeliveryOutcome:
    with transport_to(provider, **options) as transport:
        return run(transport.deliver(message, lease=StubLease()))


def test_the_provider_gets_the_message_and_its_id_is_kept():
    provider = Provider()
    outcome = deliver(provider, replace(OUTGOING_MESSAGE, tags=("welcome", "second"), metadata={"recipient": "r1"}))
    assert (outcome.status, outcome.reason, outcome.provider_id) == (DeliveryStatus.SENT, "", "b7bc2f4a")
    (asked,) = provider.asked
    assert provider.keys == ["secret"]
    assert asked["From"] == "Alice <alice@example.org>"
    assert (asked["Subject"], asked["HtmlBody"], asked["TextBody"]) == ("Hello", "<p>Hi</p>", "Hi")
    assert asked["ReplyTo"] == "help@example.org"
    assert {"Name": "List-Unsubscribe", "Value": "<https://example.org/u/1>"} in asked["Headers"]
    assert {"Name": "List-Unsubscribe-Post", "Value": "List-Unsubscribe=One-Click"} in asked["Headers"]
    assert asked["Metadata"] == {"recipient": "r1"}
    assert asked["Tag"] == "welcome", "Postmark supports one tag per message"
    pdf, logo = asked["Attachments"]
    assert (pdf["Name"], base64.b64decode(pdf["Content"])) == ("a.pdf", b"%PDF")
    assert (logo["ContentID"], base64.b64decode(logo["Content"])) == ("cid:logo", b"\x89PNG")


@each(("recipient", "shown"), [
    ("ada@example.com", "Ada Lovelace <ada@example.com>"),
    ("bob@example.com", "bob@example.com"),
    ("cc@example.com", "Cäcilie <cc@example.com>"),
    ("hidden@example.com", "hidden@example.com"),
])  # fmt: skip
def test_a_message_names_only_its_recipient(recipient, shown):
    provider = Provider()
    deliver(provider, replace(OUTGOING_MESSAGE, recipient=recipient))
    (asked,) = provider.asked
    assert asked["To"] == shown
    assert "Cc" not in asked
    assert "Bcc" not in asked


@each(("http_status", "body", "status", "reason"), [
    (429, {"ErrorCode": 429, "Message": "Slow down"}, DeliveryStatus.DEFERRED, FailureReason.RATE_LIMITED),
    (500, {"Message": "Oops"}, DeliveryStatus.DEFERRED, FailureReason.HOST_TROUBLE),
    (503, b"<html>", DeliveryStatus.DEFERRED, FailureReason.HOST_TROUBLE),
    (599, b"<html>", DeliveryStatus.DEFERRED, FailureReason.HOST_TROUBLE),
    (401, {"ErrorCode": 10, "Message": "Bad token"}, DeliveryStatus.DEFERRED, FailureReason.LOGIN_REFUSED),
    (
        422,
        {"ErrorCode": 300, "Message": "Invalid 'From' value."},
        DeliveryStatus.FAILED,
        FailureReason.PROVIDER_REFUSED,
    ),
    (400, {"Message": "Bad"}, DeliveryStatus.FAILED, FailureReason.PROVIDER_REFUSED),
    (413, b"too large", DeliveryStatus.FAILED, FailureReason.TOO_LARGE),
    (302, b"", DeliveryStatus.FAILED, FailureReason.PROVIDER_REFUSED),
])  # fmt: skip
def test_each_http_error_has_its_outcome(http_status, body, status, reason):
    outcome = deliver(Provider(refuse(http_status, body)))
    assert (outcome.status, outcome.reason) == (status, reason)
    assert not outcome.may_be_delivered
    assert not outcome.suppresses(SuppressOn.EVERY_BOUNCE)
    assert "secret" not in outcome.reply.text
    assert "<p>Hi</p>" not in outcome.reply.text


@each("http_status", [500, 503, 599])
def test_an_error_of_the_server_without_a_body_may_hide_an_acceptance(http_status):
    outcome = deliver(Provider(refuse(http_status, b"")))
    assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.HOST_TROUBLE)
    assert outcome.may_be_delivered


def test_a_recipient_refused_by_the_provider_bounces():
    refusal = {"ErrorCode": 406, "Message": "You tried to send to recipients that have been marked as inactive."
               " Found inactive addresses: ada@example.com. Inactive recipients are ones that"}  # fmt: skip
    outcome = deliver(Provider(refuse(422, refusal)))
    assert (outcome.status, outcome.reason) == (DeliveryStatus.BOUNCED, FailureReason.PROVIDER_REFUSED)
    assert not outcome.suppresses(SuppressOn.RECIPIENT_FAULT)
    assert outcome.suppresses(SuppressOn.EVERY_BOUNCE)


@each(
    "answer",
    [hang_up, sleep(0.6), refuse(200, b"not json"), refuse(200, {"odd": 1}), refuse(502, b""), refuse(504, b"")],
)
def test_a_lost_response_may_be_a_delivery(answer):
    outcome = deliver(Provider(answer), timeout=0.2)
    wanted = DeliveryStatus.DEFERRED, FailureReason.OUTCOME_UNKNOWN, True
    assert (outcome.status, outcome.reason, outcome.may_be_delivered) == wanted


def test_an_unreachable_provider_did_not_get_the_message():
    with socket.socket() as valid:
        valid.bind(("127.0.0.1", 0))
        options = {"server_token": "secret", "api_url": f"http://127.0.0.1:{valid.getsockname()[1]}/"}
        transport = AnymailTransport(POSTMARK, options=options)
        outcome = run(transport.deliver(OUTGOING_MESSAGE, lease=StubLease()))
        transport.close()
    wanted = DeliveryStatus.DEFERRED, FailureReason.NETWORK, False
    assert (outcome.status, outcome.reason, outcome.may_be_delivered) == wanted


def test_three_rejected_keys_pause_the_transport_until_one_is_accepted():
    provider = Provider(*[refuse(401, {"ErrorCode": 10, "Message": "Bad"})] * 3, accept)
    with transport_to(provider) as transport:

        async def work() -> list[DeliveryOutcome]:
            return [await transport.deliver(OUTGOING_MESSAGE, lease=StubLease()) for _ in range(5)]

        outcomes = run(work())
        assert [one.status for one in outcomes] == [DeliveryStatus.DEFERRED] * 3 + [DeliveryStatus.PARKED] * 2
        assert transport.trouble
        assert len(provider.asked) == 3
        transport._credentials._open_until = 0.0
        assert run(transport.deliver(OUTGOING_MESSAGE, lease=StubLease())).status is DeliveryStatus.SENT
        assert transport.trouble is None


def test_a_lost_lease_prevents_the_call():
    provider = Provider()
    with transport_to(provider) as transport, pytest.raises(LeaseLost):
        run(transport.deliver(OUTGOING_MESSAGE, lease=StubLease(valid=False)))
    assert provider.asked == []


def test_the_features_of_a_backend_are_detected():
    found = check_backend(POSTMARK, options={"server_token": "x"})
    assert found == Features(tags=1, metadata=True)
    assert check_backend("anymail.backends.mailgun.EmailBackend", options={"api_key": "x"}) == Features(
        10, metadata=True
    )


class NoHeaders(EmailBackend):
    def build_message_payload(self, message: Any, defaults: Any) -> Any:
        payload = super().build_message_payload(message, defaults)
        if message.extra_headers:
            payload.unsupported_feature("extra_headers")
        return payload


@each(("backend", "message"), [
    ("anymail.backends.nowhere.EmailBackend", "cannot be used"),
    ("anymail.backends.postmark.Nothing", "cannot be used"),
    (POSTMARK, "POSTMARK_SERVER_TOKEN"),
    ("django.core.mail.backends.locmem.EmailBackend", "not a django-anymail backend"),
    (f"{__name__}.NoHeaders", "extra_headers"),
])  # fmt: skip
def test_an_unsuitable_backend_is_refused(backend, message):
    with pytest.raises(BackendUnsuitable, match=message):
        AnymailTransport(backend)
