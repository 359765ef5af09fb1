"""A letter as django-anymail takes it, and what a backend must be able to carry."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.encoders import encode_base64
from email.mime.base import MIMEBase
from typing import Any

from anymail.exceptions import AnymailError
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import EmailMultiAlternatives, get_connection

from delivery.message.compose import File, Mailbox, OutgoingMessage
from delivery.message.delivery_request import DeliveryRequest, Envelope
from delivery.message.text import text_of_html

MANY_TAGS = 10


class BackendUnsuitable(Exception):
    """Raised at the start, with a sentence: the backend is not there, not configured, or too poor for our messages."""


@dataclass(frozen=True)
class Features:
    """What a backend carries beside the message itself: how many tags, and metadata or none."""

    tags: int = 0
    metadata: bool = False


def check_backend(backend: str, *, options: Mapping[str, Any] | None = None) -> Features:
    """Let the backend put a message with everything in it into its own words; nothing is sent.

    Raises BackendUnsuitable.
    """
    try:
        connection = get_connection(backend, **(options or {}))
    except (ImportError, AttributeError, ImproperlyConfigured) as error:
        raise BackendUnsuitable(f"{backend} cannot be used: {error}") from error
    if not hasattr(connection, "build_message_payload"):
        raise BackendUnsuitable(f"{backend} is no backend of django-anymail.")
    if problem := _problem(connection, Features()):
        raise BackendUnsuitable(f"{backend} cannot carry what our messages have: {problem}")
    tags = next((count for count in (MANY_TAGS, 1) if not _problem(connection, Features(tags=count))), 0)
    return Features(tags=tags, metadata=not _problem(connection, Features(metadata=True)))


def provider_message(consignment: DeliveryRequest, *, features: Features) -> EmailMultiAlternatives:
    """Return the message for the provider: only its own recipient in To, so that copies do not name one another."""
    letter = consignment.letter
    message = EmailMultiAlternatives(
        subject=letter.subject,
        body=letter.text or (text_of_html(letter.html) if letter.html else ""),
        from_email=_text(letter.sender),
        to=[_text(_own_mailbox(letter, consignment.envelope.recipient))],
        reply_to=[_text(letter.reply_to)] if letter.reply_to else None,
        headers=dict(letter.headers),
    )
    if letter.html:
        message.attach_alternative(letter.html, "text/html")
    for file in letter.files:
        message.attach(_part(file))
    if features.tags and consignment.tags:
        message.tags = list(consignment.tags[: features.tags])  # type: ignore[attr-defined]
    if features.metadata and consignment.metadata:
        message.metadata = dict(consignment.metadata)  # type: ignore[attr-defined]
    return message


def _problem(connection: Any, features: Features) -> str | None:
    message = provider_message(_probe(features), features=features)
    try:
        payload = connection.build_message_payload(message, connection.send_defaults)
        # Some backends look at what they were given only here.
        if hasattr(payload, "get_request_params"):
            payload.get_request_params(connection.api_url)
    except AnymailError as error:
        return " ".join(map(str, error.args))
    return None


def _probe(features: Features) -> DeliveryRequest:
    """Return a message with everything that a request may ask for."""
    letter = OutgoingMessage(
        message_id="<probe@example.com>",
        date=datetime(2026, 1, 1, tzinfo=UTC),
        sender=Mailbox("Sender", "sender@example.com"),
        to=(Mailbox("Recipient", "recipient@example.com"),),
        cc=(),
        reply_to=Mailbox("", "reply@example.com"),
        subject="Subject",
        html='<p>Text</p><img src="cid:logo">',
        text="Text",
        headers=(
            ("List-Unsubscribe", "<https://example.com/u/1>"),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
            ("X-Custom", "1"),
        ),
        files=(File("a.txt", "text/plain", b"a"), File("logo.png", "image/png", b"\x89PNG", "logo")),
    )
    tags = tuple(f"tag{number}" for number in range(features.tags))
    return DeliveryRequest(
        Envelope("", "recipient@example.com"), letter, tags=tags, metadata={"a": "1"} if features.metadata else {}
    )


def _own_mailbox(letter: OutgoingMessage, recipient: str) -> Mailbox:
    """Return the recipient as the letter names them; a blind copy is named nowhere."""
    named = (mailbox for mailbox in (*letter.to, *letter.cc) if mailbox.spec.lower() == recipient.lower())
    return next(named, Mailbox("", recipient))


def _text(mailbox: Mailbox) -> str:
    """Quote the name and leave it readable: the provider encodes it."""
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
