"""The envelope sender of one recipient's copies: reports about them come back to it.

The local part is a sealed token of the recipient's id (lib.tokens): it is the same on every attempt, which
greylisting hosts want, it shows no address, and nobody can make one up for somebody else's mail.
"""

from uuid import UUID

from lib.ids import from_uuid, to_uuid
from lib.tokens import InvalidToken, make_local_part, read_local_part

PURPOSE = "return-path"
ID_BYTES = 16


def return_path(recipient_id: str, *, domain: str) -> str:
    """Return `<token>@<domain>`; the token has 53 characters, RFC 5321 (4.5.3.1.1) allows 64."""
    token = make_local_part(to_uuid(recipient_id).bytes, purpose=PURPOSE)
    return f"{token}@{domain}"


def recipient_of(local_part: str) -> str:
    """Return the id of the recipient that a return path belongs to, in any case of letters. Raises InvalidToken."""
    payload = read_local_part(local_part, purpose=PURPOSE)
    if len(payload) != ID_BYTES:
        raise InvalidToken("not a recipient's id")
    return from_uuid(UUID(bytes=payload))
