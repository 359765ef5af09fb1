"""Email backend for Django: `EMAIL_BACKEND = "postrider_client.django.EmailBackend"`.

Settings: POSTRIDER_API_KEY and POSTRIDER_URL (default: the environment variables of the same names); EMAIL_TIMEOUT,
in seconds. Set further options of the API as a dict on the message, with the argument names of `client.emails.send`:
`message.postrider = {"tags": ["welcome"], "scheduled_for": …}`. After sending, `message.postrider_id` is the
email's id.
"""

import mimetypes
from collections.abc import Iterable, Sequence
from email.message import Message
from typing import Any, Optional

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from postrider_client.attachments import Attachment
from postrider_client.base_errors import PostriderError, UnsupportedMessage
from postrider_client.client import Postrider

DEFAULT_TYPE = "application/octet-stream"


class EmailBackend(BaseEmailBackend):
    """Sends emails through the API. Connections are kept while the backend is open."""

    def __init__(
        self,
        api_key: Optional[str] = None,
        base_url: Optional[str] = None,
        *,
        fail_silently: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(fail_silently=fail_silently, **kwargs)
        self.client = Postrider(
            api_key or getattr(settings, "POSTRIDER_API_KEY", None),
            base_url=base_url or getattr(settings, "POSTRIDER_URL", None),
            timeout_seconds=settings.EMAIL_TIMEOUT or 60,
        )

    def close(self) -> None:
        self.client.close()

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Send messages; return the number accepted. Raises PostriderError unless fail_silently is set."""
        return sum(self._send(message) for message in email_messages)

    def _send(self, message: EmailMessage) -> bool:
        if not message.recipients():
            return False
        try:
            accepted = self.client.emails.send(**fields_of(message))
        except PostriderError:
            if not self.fail_silently:
                raise
            return False
        message.postrider_id = accepted.id  # type: ignore[attr-defined]
        return True


def fields_of(message: EmailMessage) -> dict[str, Any]:
    """Return the arguments of `client.emails.send` for a message. Raises UnsupportedMessage."""
    headers = {name: str(value) for name, value in message.extra_headers.items()}
    field_headers = {name.lower(): headers.pop(name) for name in list(headers) if name.lower() in {"from", "reply-to"}}
    if not message.to:
        raise UnsupportedMessage("An email needs at least one recipient in `to`.")
    return {
        "from_": field_headers.get("from", str(message.from_email)),
        "to": list(map(str, message.to)),
        "cc": list(map(str, message.cc)) or None,
        "bcc": list(map(str, message.bcc)) or None,
        "reply_to": field_headers.get("reply-to", list(map(str, message.reply_to)) or None),
        "subject": str(message.subject),
        "headers": headers or None,
        "attachments": [_attachment(given) for given in message.attachments],
        **_texts(message),
        **getattr(message, "postrider", {}),
    }


def _texts(message: EmailMessage) -> dict[str, str]:
    texts = {"html" if message.content_subtype == "html" else "text": str(message.body)} if message.body else {}
    for content, kind in _alternatives(message):
        if kind != "text/html" or "html" in texts:
            raise UnsupportedMessage(f"An email can have one text and one HTML alternative; {kind} is not supported.")
        texts["html"] = content.decode() if isinstance(content, bytes) else str(content)
    return texts


def _alternatives(message: EmailMessage) -> Iterable[tuple[Any, str]]:
    return [(content, str(kind)) for content, kind in getattr(message, "alternatives", None) or []]


def _attachment(given: Any) -> Attachment:
    if isinstance(given, Message):
        return _of_part(given)
    filename, content, kind = given
    kind = kind or mimetypes.guess_type(filename or "")[0] or DEFAULT_TYPE
    if isinstance(content, str):
        content, kind = content.encode(), f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    elif isinstance(content, EmailMessage):
        content = content.message().as_bytes()
    elif isinstance(content, Message):
        content = content.as_bytes()
    return Attachment(filename or _name_for(kind), content, kind)


def _of_part(part: Message) -> Attachment:
    """Return an attachment for a MIME part. A Content-ID makes it an inline image."""
    kind = part.get_content_type()
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        content = b"".join(inner.as_bytes() for inner in part.get_payload())  # type: ignore[union-attr]
    charset = part.get_content_charset()
    content_id = part.get("Content-ID")
    return Attachment(
        part.get_filename() or _name_for(kind),
        content,
        f"{kind}; charset={charset}" if charset else kind,
        str(content_id).strip().strip("<>") if content_id else None,
    )


def _name_for(kind: str) -> str:
    return f"attachment{mimetypes.guess_extension(kind.partition(';')[0]) or ''}"
