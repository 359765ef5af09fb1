"""The canary as it comes back: an email of this installation, found by the token in its subject.

Anyone may write to its address. Only a message with a token that this installation made is kept, and none becomes a
received email of a workspace (docs/decisions/0382).
"""

import re
from uuid import UUID

from django.conf import settings
from django.dispatch import Signal

from core.lib.ids import from_uuid, to_uuid
from core.lib.tokens import InvalidToken, make_local_part, read_local_part

# Sent with the arguments `run_id` and `source`, in a thread with a database connection.
canary_returned = Signal()

PURPOSE = "canary"
PREFIX = "can_"
# A forwarding host may add some fields.
MAX_BYTES = 64 * 1024
SUBJECT = re.compile(rb"^subject:[^\r\n]*\bcanary-([a-z2-7]{53})\b", re.IGNORECASE | re.MULTILINE)
KEPT = "250 2.6.0 Canary"
UNKNOWN = "550 5.7.1 Not a canary of this installation"
TOO_LARGE = "552 5.3.4 Too large for a canary"


def canary_subject(run_id: str) -> str:
    """Return the subject of a canary: nobody else can make one."""
    return f"canary-{make_local_part(to_uuid(run_id, prefix=PREFIX).bytes, purpose=PURPOSE)}"


def is_canary_address(address: str) -> bool:
    """Return whether canaries come back to an address: CANARY_ADDRESS, or canary@RETURN_PATH_DOMAIN."""
    return bool(settings.CANARY_MINUTES) and address.lower() in {
        settings.CANARY_ADDRESS,
        f"canary@{settings.RETURN_PATH_DOMAIN}".lower(),
    }


def keep_canary(source: bytes) -> str:
    """Tell the receivers of canary_returned of a canary; return the SMTP reply to its final dot."""
    if len(source) > MAX_BYTES:
        return TOO_LARGE
    found = SUBJECT.search(source.partition(b"\r\n\r\n")[0])
    if found is None:
        return UNKNOWN
    try:
        payload = read_local_part(found[1].decode(), purpose=PURPOSE)
    except InvalidToken:
        return UNKNOWN
    canary_returned.send(None, run_id=from_uuid(UUID(bytes=payload), prefix=PREFIX), source=source)
    return KEPT
