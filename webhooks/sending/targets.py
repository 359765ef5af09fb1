"""Which URLs an endpoint may have: the same rules for create, change, test and every attempt."""

import asyncio

from django.conf import settings

from api.errors import InvalidFields
from lib.address_guard import Guard, TargetRefused
from lib.guarded_http import Rules, check_now, read_target
from lib.resolver import Resolver

FORBIDDEN = "forbidden_target"
# A request waits for this; every attempt asks again.
LOOK_UP_SECONDS = 2.0


def rules() -> Rules:
    guard = Guard(allow_private=settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS)
    return Rules(guard=guard, ports=tuple(settings.WEBHOOK_PORTS))


def check_target(url: str) -> None:
    """Check a URL, and where its name leads now. A name without addresses passes: it may get some.

    Must not be called in a transaction. Raises InvalidFields with forbidden_target.
    """
    try:
        _check(url, rules())
    except TargetRefused as error:
        problem = {"field": "url", "code": FORBIDDEN, "detail": sentence_for(error)}
        raise InvalidFields("Some fields are not valid; see errors.", errors=[problem]) from error


def _check(url: str, allowed: Rules) -> None:
    if allowed.guard.allow_private:
        # A trial, often without the internet: a look-up could only refuse what every attempt refuses anyway.
        read_target(url, rules=allowed)
        return
    resolver = Resolver(settings.DNS_SERVERS, lifetime_seconds=LOOK_UP_SECONDS)
    asyncio.run(check_now(url, rules=allowed, resolver=resolver))


def sentence_for(error: TargetRefused) -> str:
    """Return what a caller is told: what is wrong with the text, nothing of what lies behind it."""
    text = str(error)
    return text if text.endswith(".") else f"Events are not posted there: {text}."
