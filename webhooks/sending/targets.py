"""Webhook endpoint URLs: one set of rules for create, update, test and every attempt."""

from django.conf import settings

from core.api.errors import InvalidFields
from core.lib.coded_texts import CodedText
from core.lib.network.address_guard import Guard, TargetRefused
from core.lib.network.target_urls import UrlRules, parse_target

FORBIDDEN_TARGET = "forbidden_target"


def target_rules() -> UrlRules:
    guard = Guard(allow_private=settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS)
    return UrlRules(guard=guard, ports=tuple(settings.WEBHOOK_PORTS))


def check_target(url: str) -> None:
    """Check the text of a URL, including an address or private name in it. Raises InvalidFields with forbidden_target.

    The addresses of a public name are checked by every attempt; a request never waits for DNS.
    """
    try:
        parse_target(url, rules=target_rules())
    except TargetRefused as error:
        problem = {"field": "url", "code": FORBIDDEN_TARGET, "detail": refusal_detail(error)}
        raise InvalidFields([problem]) from error


def is_same_host(url: str, other: str) -> bool:
    """Return whether two valid URLs lead to the same scheme, host and port."""
    rules = target_rules()
    return parse_target(url, rules=rules).url.origin() == parse_target(other, rules=rules).url.origin()


def refusal_detail(error: TargetRefused) -> str:
    """Return the error detail for a caller: it describes the URL and reveals nothing about the network."""
    text = str(error)
    return text if text.endswith(".") else CodedText("webhooks.forbidden_target", error=text)
