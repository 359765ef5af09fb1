"""Return paths: the envelope sender of a recipient's message, to which bounce reports are sent (VERP).

The local part is an encrypted and authenticated token of the recipient's id (core.lib.tokens). It is the same on every
attempt, as greylisting hosts require, shows no address, and cannot be forged for another recipient.
"""

from uuid import UUID

from core.lib.ids import from_uuid
from core.lib.tokens import InvalidToken, make_local_part, read_local_part

PURPOSE = "return-path"
ID_BYTES = 16


def return_path(recipient: UUID, *, domain: str) -> str:
    """Return `<token>@<domain>`. The token has 53 characters; RFC 5321 (4.5.3.1.1) allows 64."""
    token = make_local_part(recipient.bytes, purpose=PURPOSE)
    return f"{token}@{domain}"


def read_return_path(local_part: str) -> str:
    """Return the recipient id of a return path, in upper or lower case. Raises InvalidToken."""
    payload = read_local_part(local_part, purpose=PURPOSE)
    if len(payload) != ID_BYTES:
        raise InvalidToken("not a recipient's id")
    return from_uuid(UUID(bytes=payload))
