"""The personal links of an email: made when it is sent, read when one comes back.

Each token holds all that its door needs, so that links work when the email is long deleted and, for opens and
clicks, when the database is down. Sealed (lib.tokens): a link shows no address, and nobody else can make one.
See docs/decisions/0026.
"""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from delivery.message.html import is_trackable
from lib.ids import from_uuid, to_uuid
from lib.tokens import InvalidToken, make_token, read_token

OPEN = "open"
CLICK = "click"
UNSUBSCRIBE = "unsubscribe"
ID_BYTES = 16


@dataclass(frozen=True)
class ClickedLink:
    recipient_id: str
    target: str


@dataclass(frozen=True)
class UnsubscribeLink:
    """Who wants no more mail from whom; the recipient's row may be gone."""

    workspace_id: str
    recipient_id: str
    address: str


def open_url(recipient_id: str) -> str:
    """Return the address of a recipient's pixel."""
    return f"{settings.PUBLIC_URL}/t/o/{make_token(to_uuid(recipient_id).bytes, purpose=OPEN)}"


def click_url(recipient_id: str, *, target: str) -> str:
    """Return the link that stands in for a target; it is 4/3 as long and some 90 characters longer."""
    payload = to_uuid(recipient_id).bytes + target.encode()
    return f"{settings.PUBLIC_URL}/t/c/{make_token(payload, purpose=CLICK)}"


def unsubscribe_url(recipient_id: str, *, workspace_id: str, address: str) -> str:
    """Return the link of the footer and of List-Unsubscribe; at most 404 characters behind PUBLIC_URL."""
    ids = to_uuid(workspace_id, prefix="ws_").bytes + to_uuid(recipient_id).bytes
    return f"{settings.PUBLIC_URL}/u/{make_token(ids + address.encode(), purpose=UNSUBSCRIBE)}"


def read_open(token: str) -> str:
    """Return the id of the recipient whose pixel it is. Raises InvalidToken."""
    (recipient_id,), _ = _split(token, purpose=OPEN, ids=1)
    return recipient_id


def read_click(token: str) -> ClickedLink:
    """Return who clicked what. Raises InvalidToken; also for a target that nobody may be sent to."""
    (recipient_id,), rest = _split(token, purpose=CLICK, ids=1)
    target = rest.decode()
    if not is_trackable(target):
        raise InvalidToken("not a target")
    return ClickedLink(recipient_id, target)


def read_unsubscribe(token: str) -> UnsubscribeLink:
    """Return who unsubscribes. Raises InvalidToken."""
    (workspace, recipient_id), address = _split(token, purpose=UNSUBSCRIBE, ids=2)
    return UnsubscribeLink(f"ws_{workspace}", recipient_id, address.decode())


def _split(token: str, *, purpose: str, ids: int) -> tuple[list[str], bytes]:
    """Return the ids that a token begins with, without their prefixes, and what follows."""
    payload = read_token(token, purpose=purpose)
    if len(payload) < ids * ID_BYTES:
        raise InvalidToken("too short")
    places = range(0, ids * ID_BYTES, ID_BYTES)
    found = [from_uuid(UUID(bytes=payload[place : place + ID_BYTES])) for place in places]
    return found, payload[ids * ID_BYTES :]
