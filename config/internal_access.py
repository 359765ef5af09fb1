"""Internal access to metrics and readiness details: requests from this machine, or with METRICS_TOKEN."""

import hmac

from django.conf import settings
from django.http import HttpRequest

from core.lib.network.client_address import FORWARDED, client_address


def has_internal_access(request: HttpRequest) -> bool:
    """Return whether a request may see metrics and readiness details."""
    return _has_token(request) or _is_local(request)


def _has_token(request: HttpRequest) -> bool:
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    sent_token = token.strip() if scheme.lower() == "bearer" else ""
    return bool(settings.METRICS_TOKEN) and hmac.compare_digest(sent_token.encode(), settings.METRICS_TOKEN.encode())


def _is_local(request: HttpRequest) -> bool:
    if any(name in request.META for name in FORWARDED):
        return False
    address = client_address(request.META)
    return address is not None and address.is_loopback
