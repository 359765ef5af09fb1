"""Webhook endpoint URLs: one set of rules for create, update, test and every attempt."""

import asyncio

from django.conf import settings

from api.errors import INVALID_FIELDS_DETAIL, InvalidFields
from lib.address_guard import Guard, TargetRefused
from lib.guarded_http import UrlRules, check_url, parse_target
from lib.resolver import Resolver

FORBIDDEN_TARGET = "forbidden_target"
# An API request waits for this lookup; every attempt repeats it.
LOOKUP_SECONDS = 2.0


def target_rules() -> UrlRules:
    guard = Guard(allow_private=settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS)
    return UrlRules(guard=guard, ports=tuple(settings.WEBHOOK_PORTS))


def check_target(url: str) -> None:
    """Check a URL and the current addresses of its host. A host without addresses passes: it may get some later.

    Must not be called in a transaction. Raises InvalidFields with forbidden_target.
    """
    try:
        _check(url, target_rules())
    except TargetRefused as error:
        problem = {"field": "url", "code": FORBIDDEN_TARGET, "detail": refusal_detail(error)}
        raise InvalidFields(INVALID_FIELDS_DETAIL, errors=[problem]) from error


def _check(url: str, allowed: UrlRules) -> None:
    if allowed.guard.allow_private:
        # Trial installations often have no internet access, and every attempt checks the addresses anyway.
        parse_target(url, rules=allowed)
        return
    resolver = Resolver(settings.DNS_SERVERS, lifetime_seconds=LOOKUP_SECONDS)
    asyncio.run(check_url(url, rules=allowed, resolver=resolver))


def refusal_detail(error: TargetRefused) -> str:
    """Return the error detail for a caller: it describes the URL and reveals nothing about the network."""
    text = str(error)
    return text if text.endswith(".") else f"Events cannot be posted to this URL: {text}."
