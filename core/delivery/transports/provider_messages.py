"""Provider messages: an outgoing message in django-anymail's form, and the check that a backend can carry it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.encoders import encode_base64
from email.mime.base import MIMEBase
from typing import Any

from anymail.exceptions import AnymailError
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import EmailMultiAlternatives, get_connection

from core.delivery.message.compose import File, OutgoingMessage
from core.delivery.message.text import html_to_text
from core.lib.email_addresses import Address

MANY_TAGS = 10


class BackendUnsuitable(Exception):
    """Raised at startup for a backend that is missing, not configured, or unable to carry the messages."""


@dataclass(frozen=True)
class Features:
    """Optional features of a backend: the number of tags per message, and whether it carries metadata."""

    tags: int = 0
    metadata: bool = False


def check_backend(backend: str, *, options: Mapping[str, Any] | None = None) -> Features:
    """Return the features of a backend, found by building the payload of a full message; nothing is sent.

    Raises BackendUnsuitable.
    """
    try:
        connection = get_connection(backend, **(options or {}))
    except (ImportError, AttributeError, ImproperlyConfigured) as error:
        raise BackendUnsuitable(f"{backend} cannot be used: {error}") from error
    if not hasattr(connection, "build_message_payload"):
        raise BackendUnsuitable(f"{backend} is not a django-anymail backend.")
    if problem := _problem(connection, Features()):
        raise BackendUnsuitable(f"{backend} does not support a required feature: {problem}")
    tags = next((count for count in (MANY_TAGS, 1) if not _problem(connection, Features(tags=count))), 0)
    return Features(tags=tags, metadata=not _problem(connection, Features(metadata=True)))


def provider_message(outgoing: OutgoingMessage, *, features: Features) -> EmailMultiAlternatives:
    """Return the message for the provider. To holds its recipient alone, so that copies do not name one another."""
    message = EmailMultiAlternatives(
        subject=outgoing.subject,
        body=outgoing.text or (html_to_text(outgoing.html) if outgoing.html else ""),
        from_email=_text(outgoing.sender),
        to=[_text(_recipient_mailbox(outgoing))],
        reply_to=[_text(mailbox) for mailbox in outgoing.reply_to],
        headers=dict(outgoing.headers),
    )
    if outgoing.html:
        message.attach_alternative(outgoing.html, "text/html")
    for file in outgoing.files:
        message.attach(_part(file))
    if features.tags and outgoing.tags:
        message.tags = list(outgoing.tags[: features.tags])  # type: ignore[attr-defined]
    if features.metadata and outgoing.metadata:
        message.metadata = dict(outgoing.metadata)  # type: ignore[attr-defined]
    return message


def _problem(connection: Any, features: Features) -> str | None:
    message = provider_message(_probe(features), features=features)
    try:
        payload = connection.build_message_payload(message, connection.send_defaults)
        # Some backends validate their arguments only here.
        if hasattr(payload, "get_request_params"):
            payload.get_request_params(connection.api_url)
    except AnymailError as error:
        return " ".join(map(str, error.args))
    return None


def _probe(features: Features) -> OutgoingMessage:
    """Return a message that uses every feature."""
    return OutgoingMessage(
        return_path="",
        recipient="recipient@example.com",
        message_id="<probe@example.com>",
        date=datetime(2026, 1, 1, tzinfo=UTC),
        sender=Address("Sender", "sender@example.com"),
        to=(Address("Recipient", "recipient@example.com"),),
        reply_to=(Address("", "reply@example.com"),),
        subject="Subject",
        html='<p>Text</p><img src="cid:logo">',
        text="Text",
        headers=(
            ("List-Unsubscribe", "<https://example.com/u/1>"),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
            ("X-Custom", "1"),
        ),
        files=(File("a.txt", "text/plain", b"a"), File("logo.png", "image/png", b"\x89PNG", "logo")),
        tags=tuple(f"tag{number}" for number in range(features.tags)),
        metadata={"a": "1"} if features.metadata else {},
    )


def _recipient_mailbox(outgoing: OutgoingMessage) -> Address:
    """Return the mailbox of the recipient with the name that To or Cc gives; a bcc recipient has none."""
    named = (mailbox for mailbox in (*outgoing.to, *outgoing.cc) if mailbox.spec.lower() == outgoing.recipient.lower())
    return next(named, Address("", outgoing.recipient))


def _text(mailbox: Address) -> str:
    """Return `"name" <address>` with the name unencoded: the provider encodes it."""
    if not mailbox.name:
        return mailbox.spec
    name = mailbox.name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{name}" <{mailbox.spec}>'


def _part(file: File) -> MIMEBase:
    main, _, sub = file.content_type.partition(";")[0].strip().partition("/")
    part = MIMEBase(main, sub or "octet-stream")
    part.set_payload(file.data)
    encode_base64(part)
    part.add_header("Content-Disposition", "inline" if file.content_id else "attachment", filename=file.filename)
    if file.content_id:
        part.add_header("Content-ID", f"<{file.content_id}>")
    return part
