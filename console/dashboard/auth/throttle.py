"""Throttles for sign-in, sign-up, password resets and invitations (docs/decisions/0056).

No account is ever locked: every token bucket refills. A browser that has signed in before uses a separate bucket, so
attempts from other browsers cannot keep the owner of an account waiting.
"""

import hashlib
import secrets
import struct
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import ngettext

from core.lib.network.client_address import client_address, client_network
from core.lib.token_bucket import RateLimit, take_token
from core.lib.tokens import InvalidToken, make_token, read_token
from core.workspaces.models import User, normalize_identity

PREFIX = "door:"
PURPOSE = "known-browser"
COOKIE = "__Host-known" if settings.SECURE else "known"
COOKIE_SECONDS = 180 * 86_400
BROWSER = struct.Struct(">Q8s")


@dataclass(frozen=True)
class Throttle:
    """Limits of one form.

    by_address: the limit of a client network.
    by_account: the limit of an account, from any network.
    """

    name: str
    by_address: RateLimit
    by_account: RateLimit | None = None


SIGN_IN = Throttle("sign-in", RateLimit(0.5, 30), RateLimit(1 / 20, 10))
CODE = Throttle("code", RateLimit(0.5, 30), RateLimit(1 / 30, 5))
# Offices share an address; each sign-in has two requests.
PROVIDER = Throttle("provider", RateLimit(2, 120))
SIGN_UP = Throttle("sign-up", RateLimit(1 / 60, 10))
INVITATION = Throttle("invitation", RateLimit(0.2, 20))
INVITE = Throttle("invite", RateLimit(1 / 30, 30), RateLimit(1 / 60, 20))
RESET = Throttle("reset", RateLimit(1 / 60, 10), RateLimit(1 / 300, 3))
# An open page asks every five seconds.
SHARED_RECORDS = Throttle("shared-records", RateLimit(2, 120))
EMAIL_CONFIRMATION = Throttle("proof", RateLimit(1 / 60, 10), RateLimit(1 / 300, 3))


def throttle_network(request: HttpRequest, throttle: Throttle) -> int:
    """Take a token from the bucket of the client's network; return the seconds to wait, 0 if allowed."""
    address = client_address(request.META)
    return _take(f"{throttle.name}:from:{client_network(address) if address else 'unknown'}", throttle.by_address)


def throttle_account(request: HttpRequest, throttle: Throttle, *, account: str) -> int:
    """Take a token from an account's bucket; return the seconds to wait, 0 if allowed.

    account: an email address as entered, or a workspace id. All spellings of one account share a bucket.
    """
    assert throttle.by_account
    identity = normalize_identity(account)
    name = _known_browser(request, identity) or hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()
    return _take(f"{throttle.name}:for:{name}", throttle.by_account)


def remember_browser(response: HttpResponse, user: User) -> None:
    """Set the cookie that selects this browser's own bucket at the next sign-in. It grants no access."""
    token = make_token(BROWSER.pack(user.pk, secrets.token_bytes(8)), purpose=PURPOSE)
    response.set_cookie(
        COOKIE, token, max_age=COOKIE_SECONDS, secure=settings.SECURE, httponly=True, samesite="Lax", path="/"
    )


def _known_browser(request: HttpRequest, identity: str) -> str | None:
    try:
        user_id, browser = BROWSER.unpack(read_token(request.COOKIES.get(COOKIE, ""), purpose=PURPOSE))
    except (InvalidToken, struct.error):
        return None
    if not User.objects.filter(pk=user_id, email=identity).exists():
        return None
    return f"{user_id}:{browser.hex()}"


def _take(key: str, limit: RateLimit) -> int:
    level = take_token(f"{PREFIX}{key}", limit=limit)
    return 0 if level.is_allowed else level.retry_after_seconds


def throttled_message(seconds: int) -> str:
    text = ngettext(
        "Too many attempts. Try again in %(seconds)s second.",
        "Too many attempts. Try again in %(seconds)s seconds.",
        seconds,
    )
    return text % {"seconds": seconds}
