"""Email backend for Django: `EMAIL_BACKEND = "postrider_client.django.EmailBackend"`.

Settings: POSTRIDER_API_KEY and POSTRIDER_URL (default: the environment variables of the same names); EMAIL_TIMEOUT,
in seconds. Set further options of the API as a dict on the message, with the argument names of `client.emails.send`:
`message.postrider = {"tags": ["welcome"], "scheduled_for": …}`. After sending, `message.postrider_id` is the
email's id.
"""

import mimetypes
from collections.abc import Mapping, Sequence
from email.message import Message
from email.utils import getaddresses, quote
from typing import Any, Optional

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from postrider_client.attachments import Attachment
from postrider_client.base_errors import PostriderError, UnsupportedMessage
from postrider_client.client import Postrider

DEFAULT_TYPE = "application/octet-stream"
TEXTS = {"text/plain": "text", "text/html": "html"}
# Headers that replace a field. The Message-ID of an email is that of the service.
REPLACED = {"from", "reply-to", "to", "cc", "message-id"}
ORIGINAL_ID = "X-Original-Message-ID"


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
    headers = {str(name): str(value) for name, value in message.extra_headers.items()}
    replaced = {name.lower(): headers.pop(name) for name in list(headers) if name.lower() in REPLACED}
    if "message-id" in replaced:
        headers.setdefault(ORIGINAL_ID, replaced["message-id"])
    return {
        "from_": replaced.get("from", str(message.from_email)),
        **_recipients(message, replaced),
        "reply_to": replaced.get("reply-to", list(map(str, message.reply_to)) or None),
        "subject": str(message.subject),
        "headers": headers or None,
        **_contents(message),
        **getattr(message, "postrider", {}),
    }


def _recipients(message: EmailMessage, replaced: Mapping[str, str]) -> dict[str, Any]:
    """Return who is shown and who receives the message. A header To or Cc changes only what is shown."""
    fields = {name: list(map(str, getattr(message, name))) for name in ("to", "cc", "bcc")}
    recipients = [address for addresses in fields.values() for address in addresses]
    shown = replaced.keys() & {"to", "cc"}
    for name in shown:
        fields["bcc"] += fields[name]
        fields[name] = _addresses(replaced[name])
    return {
        "to": fields["to"],
        "cc": fields["cc"] or None,
        "bcc": fields["bcc"] or None,
        "envelope": recipients if shown else None,
    }


def _addresses(header: str) -> list[str]:
    """Return the addresses of a header, with quoted names; a group without members has none."""
    parts = getaddresses([header])
    # Versions of Python differ in what they make of names that need quotes and have none. The API reads them.
    if any(address and "@" not in address for _, address in parts):
        return [header] if "@" in header else []
    found = [(name, address) for name, address in parts if "@" in address]
    addresses = [f'"{quote(name)}" <{address}>' if name else address for name, address in found]
    return addresses or ([header] if "@" in header else [])


def _contents(message: EmailMessage) -> dict[str, Any]:
    """Return the texts and files. Of a message with several texts or HTML alternatives, the API has one each."""
    contents = {"html" if message.content_subtype == "html" else "text": str(message.body)} if message.body else {}
    files = [_attachment(given) for given in message.attachments]
    for content, kind in getattr(message, "alternatives", None) or []:
        name = TEXTS.get(_media_type(kind))
        if name and name not in contents:
            contents[name] = content.decode() if isinstance(content, bytes) else str(content)
        elif name or not _media_type(kind).startswith("text/"):
            raise UnsupportedMessage(f"An email can have one text, one HTML and other text/ alternatives, not {kind}.")
        else:
            files.append(_alternative(content, str(kind)))
    return {**contents, "attachments": files}


def _alternative(content: Any, kind: str) -> Attachment:
    data = content if isinstance(content, bytes) else str(content).encode()
    kind = kind if "charset" in kind.lower() else f"{kind}; charset=utf-8"
    name = "invite.ics" if _media_type(kind) == "text/calendar" else _name_for(kind)
    return Attachment(name, data, kind, alternative=True)


def _media_type(kind: str) -> str:
    return str(kind).partition(";")[0].strip().lower()


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
