"""Probe of `manage.py doctor`: a signed request to /healthz that returns how the request reached this process.

The signature also shows that PUBLIC_URL leads to this installation: only it has the SECRET_KEY.
"""

from typing import Any

from django.core import signing
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest

from core.lib.network.client_address import is_trusted_proxy

HEADER = "X-Postrider-Probe"
SALT = "postrider.doctor"
MAX_AGE_SECONDS = 60


def sign_probe() -> str:
    return signing.dumps("probe", salt=SALT)


def describe_arrival(request: HttpRequest) -> dict[str, Any]:
    """Return the facts about a signed probe that its sender cannot see; nothing for any other request."""
    try:
        signing.loads(request.headers.get(HEADER, ""), salt=SALT, max_age=MAX_AGE_SECONDS)
    except signing.BadSignature:
        return {}
    peer = request.META.get("REMOTE_ADDR", "")
    return {
        "peer": peer,
        "isPeerTrusted": is_trusted_proxy(peer),
        "isSecure": request.is_secure(),
        "isHostAllowed": _is_host_allowed(request),
        "hasForwardedFor": "HTTP_X_FORWARDED_FOR" in request.META,
    }


def _is_host_allowed(request: HttpRequest) -> bool:
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True
