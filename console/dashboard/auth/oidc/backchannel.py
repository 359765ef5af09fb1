"""Back-channel logout (OpenID Connect Back-Channel Logout 1.0): the provider ends all sessions of a person."""

import hashlib
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from console.dashboard.auth.oidc.errors import CLOCK_SKEW_SECONDS, ProviderRefused, ProviderUnavailable
from core.workspaces.identities import end_sessions, use_logout_token
from core.workspaces.models import Identity

if TYPE_CHECKING:
    from console.dashboard.auth.oidc.provider import Provider

LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
# A token is remembered while it is valid; one that is valid for longer is refused.
MAX_LIFETIME = timedelta(hours=1)

log = logging.getLogger("postrider.accounts")


@csrf_exempt  # The provider has no cookie; its signature proves the request.
@require_POST
@never_cache
def backchannel_logout(request: HttpRequest) -> HttpResponse:
    if not settings.OIDC_ISSUER:
        raise Http404
    from console.dashboard.auth.oidc.provider import Provider  # noqa: PLC0415 - see console.dashboard.auth.oidc.errors

    try:
        _log_out(Provider(), request.POST.get("logout_token", ""))
    except ProviderRefused as error:
        log.warning("a logout token was refused", extra={"data": {"reason": str(error)[:300]}})
        return JsonResponse({"error": "invalid_request", "error_description": str(error)[:300]}, status=400)
    except ProviderUnavailable as error:
        log.warning("a logout token could not be checked", extra={"data": {"reason": str(error)[:300]}})
        return JsonResponse({"error": "temporarily_unavailable"}, status=503)
    return HttpResponse(status=200)


def _log_out(provider: "Provider", text: str) -> None:
    """End the sessions of the person that a logout token names. Raises ProviderRefused, ProviderUnavailable."""
    claims = provider.read_logout_token(text)
    _check_logout_claims(claims)
    digest = hashlib.sha256(f"{claims['iss']} {claims['jti']}".encode()).hexdigest()
    if not use_logout_token(digest, lifetime=MAX_LIFETIME + timedelta(seconds=2 * CLOCK_SKEW_SECONDS)):
        raise ProviderRefused("the token was used before")
    identity = Identity.objects.select_related("user").filter(issuer=claims["iss"], subject=claims["sub"]).first()
    if identity:
        end_sessions(identity.user)


def _check_logout_claims(claims: dict[str, Any]) -> None:
    """Raise ProviderRefused for a token that is no logout token, such as an ID token."""
    events = claims.get("events")
    if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
        raise ProviderRefused("the token is not about a logout")
    if "nonce" in claims:
        raise ProviderRefused("a logout token has no nonce")
    if claims["exp"] - claims["iat"] > MAX_LIFETIME.total_seconds():
        raise ProviderRefused("the token is valid for more than an hour")
