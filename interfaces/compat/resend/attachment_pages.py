"""Pages of the attachments of an email, sent or received, in Resend's API."""

from collections.abc import Sequence

from rest_framework.request import Request

from interfaces.compat.errors import invalid_field
from interfaces.compat.resend.requests import read_limit
from interfaces.compat.resend.resources import Resource


def attachment_page(request: Request, entries: Sequence[Resource]) -> tuple[Sequence[Resource], bool]:
    """Return the attachments next to another one, and whether there are more in that direction.

    Raises InvalidFields for an unknown one.
    """
    limit = read_limit(request)
    ids = [entry["id"] for entry in entries]
    positions = {
        name: _position(ids, text, field=name)
        for name in ("after", "before")
        if (text := request.query_params.get(name))
    }
    if "before" in positions:
        earlier = entries[: positions["before"]]
        return earlier[-limit:], len(earlier) > limit
    later = entries[positions["after"] + 1 :] if "after" in positions else entries
    return later[:limit], len(later) > limit


def _position(ids: Sequence[str], text: str, *, field: str) -> int:
    if text not in ids:
        raise invalid_field(field, "There is no attachment with this id.")
    return ids.index(text)
