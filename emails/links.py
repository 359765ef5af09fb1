"""Recipient links of an email: the tracking pixel, tracked links and the unsubscribe link.

Each token contains everything its URL needs, so links work after the email is deleted and, for opens and clicks,
while the database is down. Tokens are encrypted and authenticated (core.lib.tokens): a link shows no address and cannot
be forged. See docs/decisions/0026.

base_url, of each URL: its start, which is that of the sending domain's tracking host; empty for PUBLIC_URL.
"""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from core.delivery.message.html import is_trackable
from core.lib.ids import from_uuid, to_uuid
from core.lib.tokens import InvalidToken, make_token, read_token
from streams.models import MAIN

OPEN = "open"
# Links of suspended workspaces show a page first (docs/decisions/0093). Older links do not name their workspace.
CLICK = "click-of-workspace"
OLD_CLICK = "click"
# Links of the stream `main`, and of older emails: they unsubscribe from the whole workspace.
UNSUBSCRIBE = "unsubscribe"
UNSUBSCRIBE_STREAM = "unsubscribe-stream"
ID_BYTES = 16


@dataclass(frozen=True)
class ClickedLink:
    """The recipient and the target of a tracked link. workspace_id: empty for a link of an older version."""

    recipient_id: str
    target: str
    workspace_id: str = ""


@dataclass(frozen=True)
class UnsubscribeLink:
    """The workspace, stream and address of an unsubscribe link; the recipient's row may be deleted."""

    workspace_id: str
    recipient_id: str
    address: str
    stream: str = MAIN


def open_url(recipient_id: str, *, base_url: str = "") -> str:
    """Return the URL of a recipient's tracking pixel."""
    return _url("/t/o/", make_token(to_uuid(recipient_id).bytes, purpose=OPEN), base_url)


def click_url(recipient_id: str, *, workspace_id: str, target: str, base_url: str = "") -> str:
    """Return the tracked link for a target: 4/3 of its length plus about 110 characters."""
    ids = to_uuid(workspace_id, prefix="ws_").bytes + to_uuid(recipient_id).bytes
    return _url("/t/c/", make_token(ids + target.encode(), purpose=CLICK), base_url)


def unsubscribe_url(
    recipient_id: str, *, workspace_id: str, address: str, stream: str = MAIN, base_url: str = ""
) -> str:
    """Return the URL for the footer and List-Unsubscribe: at most 459 characters after its start."""
    link = UnsubscribeLink(workspace_id, recipient_id, address, stream)
    return _url("/u/", _unsubscribe_token(link), base_url)


def preferences_url(link: UnsubscribeLink, *, base_url: str = "") -> str:
    """Return the URL of the preference page of a link's recipient."""
    return _url("/p/", _unsubscribe_token(link), base_url)


def _unsubscribe_token(link: UnsubscribeLink) -> str:
    ids = to_uuid(link.workspace_id, prefix="ws_").bytes + to_uuid(link.recipient_id).bytes
    if link.stream == MAIN:
        return make_token(ids + link.address.encode(), purpose=UNSUBSCRIBE)
    # A slug has no spaces.
    return make_token(ids + f"{link.stream} {link.address}".encode(), purpose=UNSUBSCRIBE_STREAM)


def read_open(token: str) -> str:
    """Return the recipient id of a tracking pixel's token. Raises InvalidToken."""
    (recipient_id,), _ = _split(token, purpose=OPEN, ids=1)
    return recipient_id


def read_click(token: str) -> ClickedLink:
    """Return the link of a token. Raises InvalidToken, also for a forbidden target."""
    try:
        (workspace, recipient_id), target = _split(token, purpose=CLICK, ids=2)
    except InvalidToken:
        (recipient_id,), target = _split(token, purpose=OLD_CLICK, ids=1)
        workspace = ""
    link = ClickedLink(recipient_id, target.decode(), workspace and f"ws_{workspace}")
    if not is_trackable(link.target):
        raise InvalidToken("forbidden target")
    return link


def read_unsubscribe(token: str) -> UnsubscribeLink:
    """Return the link of an unsubscribe token. Raises InvalidToken."""
    try:
        (workspace, recipient_id), text = _split(token, purpose=UNSUBSCRIBE_STREAM, ids=2)
        stream, _, address = text.decode().partition(" ")
    except InvalidToken:
        (workspace, recipient_id), text = _split(token, purpose=UNSUBSCRIBE, ids=2)
        stream, address = MAIN, text.decode()
    return UnsubscribeLink(f"ws_{workspace}", recipient_id, address, stream)


def _url(path: str, token: str, base_url: str) -> str:
    return f"{base_url or settings.PUBLIC_URL}{path}{token}"


def _split(token: str, *, purpose: str, ids: int) -> tuple[list[str], bytes]:
    """Return the ids at the start of a token's payload, without prefixes, and the rest of the payload."""
    payload = read_token(token, purpose=purpose)
    if len(payload) < ids * ID_BYTES:
        raise InvalidToken("too short")
    offsets = range(0, ids * ID_BYTES, ID_BYTES)
    values = [from_uuid(UUID(bytes=payload[offset : offset + ID_BYTES])) for offset in offsets]
    return values, payload[ids * ID_BYTES :]
