"""How fast a stranger may knock: at sign-in, sign-up, reset and the like (docs/decisions/0056).

Nobody is locked out: every bucket fills again. A browser that has signed in before knocks at a bucket of its own,
so that a stranger who empties the account's keeps nobody but strangers waiting.
"""

import hashlib
import secrets
import struct
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from lib.client_address import client_address, network_of
from lib.token_bucket import Limit, take_token
from lib.tokens import InvalidToken, make_token, read_token
from workspaces.models import User

PREFIX = "door:"
PURPOSE = "known-browser"
COOKIE = "__Host-known" if settings.SECURE else "known"
COOKIE_SECONDS = 180 * 86_400
NAME = struct.Struct(">Q8s")


@dataclass(frozen=True)
class Door:
    """by_address: for a client's network. by_account: for what is knocked for, whoever knocks."""

    name: str
    by_address: Limit
    by_account: Limit | None = None


SIGN_IN = Door("sign-in", Limit(0.5, 30), Limit(1 / 20, 10))
CODE = Door("code", Limit(0.5, 30), Limit(1 / 30, 5))
SIGN_UP = Door("sign-up", Limit(1 / 60, 10))
INVITATION = Door("invitation", Limit(0.2, 20))
INVITE = Door("invite", Limit(1 / 30, 30), Limit(1 / 60, 20))
RESET = Door("reset", Limit(1 / 60, 10), Limit(1 / 300, 3))
PROOF = Door("proof", Limit(1 / 60, 10), Limit(1 / 300, 3))


def wait_seconds(request: HttpRequest, door: Door) -> int:
    """Take a token of the client's network; return for how long it has to wait, 0 for not at all."""
    address = client_address(request.META)
    return _take(f"{door.name}:from:{network_of(address) if address else 'unknown'}", door.by_address)


def account_wait_seconds(request: HttpRequest, door: Door, *, account: str) -> int:
    """Take a token of what is knocked for: an account's address, a workspace's id; return the wait."""
    assert door.by_account
    known = _known_browser(request, account)
    name = known or hashlib.sha256(account.lower().encode("utf-8", "replace")).hexdigest()
    return _take(f"{door.name}:for:{name}", door.by_account)


def remember_browser(response: HttpResponse, user: User) -> None:
    """Let this browser be told from strangers when it signs in next; it opens nothing by itself."""
    token = make_token(NAME.pack(user.pk, secrets.token_bytes(8)), purpose=PURPOSE)
    response.set_cookie(
        COOKIE, token, max_age=COOKIE_SECONDS, secure=settings.SECURE, httponly=True, samesite="Lax", path="/"
    )


def _known_browser(request: HttpRequest, account: str) -> str | None:
    try:
        user_id, browser = NAME.unpack(read_token(request.COOKIES.get(COOKIE, ""), purpose=PURPOSE))
    except (InvalidToken, struct.error):
        return None
    if not User.objects.filter(pk=user_id, email=account.strip().lower()).exists():
        return None
    return f"{user_id}:{browser.hex()}"


def _take(key: str, limit: Limit) -> int:
    level = take_token(f"{PREFIX}{key}", limit=limit)
    return 0 if level.is_allowed else level.retry_after_seconds


def too_fast(seconds: int) -> str:
    return _("That was too often. Try again in %(seconds)s seconds.") % {"seconds": seconds}
