"""The attachments of sent emails: their ids, and links to download them without a key (docs/decisions/0244)."""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings

from core.lib.ids import from_uuid, to_uuid
from core.lib.tokens import InvalidToken, make_token, read_token
from emails.models import Attachment, Email

PREFIX = "att_"
PURPOSE = "sent-attachment"
# The email, the position of the file, and the expiry in seconds since 1970.
PAYLOAD = struct.Struct(">16sHQ")
LINK_LIFETIME = timedelta(hours=1)


@dataclass(frozen=True)
class AttachmentLink:
    """A valid link."""

    email_id: str
    position: int


def list_attachments(email: Email) -> Sequence[Attachment]:
    """Return the files of an email without their bytes; none if its content is not kept."""
    return list(email.content.attachments.defer("data")) if email.content and email.keeps_content else []


def find_attachment(email: Email, attachment_id: str) -> Attachment | None:
    """Return the file of an email with an id."""
    return next((file for file in list_attachments(email) if id_of(email, file) == attachment_id), None)


def id_of(email: Email, file: Attachment) -> str:
    """Return the id of a file. Emails may share their content, so it is made of the email and the position."""
    digest = hashlib.sha256(f"{PURPOSE} {email.id} {file.position}".encode()).digest()
    return from_uuid(UUID(bytes=digest[:16]), prefix=PREFIX)


def attachment_url(email: Email, file: Attachment, *, expires_at: datetime) -> str:
    payload = PAYLOAD.pack(to_uuid(email.id).bytes, file.position, int(expires_at.timestamp()))
    return f"{settings.PUBLIC_URL}/attachments/{make_token(payload, purpose=PURPOSE)}"


def read_link(token: str) -> AttachmentLink | None:
    """Return what a token permits, None for an invalid or expired one."""
    try:
        data = read_token(token, purpose=PURPOSE)
    except InvalidToken:
        return None
    if len(data) != PAYLOAD.size:
        return None
    email, position, expires = PAYLOAD.unpack(data)
    if datetime.now(UTC) >= datetime.fromtimestamp(expires, UTC):
        return None
    return AttachmentLink(from_uuid(UUID(bytes=email)), position)
