"""Reply addresses of sent emails: Reply-To of an email with replyTracking, by which its answers are found."""

from uuid import UUID

from core.lib.ids import from_uuid
from core.lib.tokens import InvalidToken, make_local_part, read_local_part

PURPOSE = "reply"
PREFIX = "r-"
ID_BYTES = 16


def reply_address(recipient: UUID, *, domain: str) -> str:
    """Return `r-<token>@<domain>`; the local part has 55 of the 64 characters that RFC 5321 allows."""
    return f"{PREFIX}{make_local_part(recipient.bytes, purpose=PURPOSE)}@{domain}"


def read_reply_token(token: str) -> str:
    """Return the id of the recipient, in upper or lower case. Raises InvalidToken."""
    payload = read_local_part(token, purpose=PURPOSE)
    if len(payload) != ID_BYTES:
        raise InvalidToken("not a recipient's id")
    return from_uuid(UUID(bytes=payload))
