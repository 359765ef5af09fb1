"""The end of a session that the provider began: at most OIDC_SESSION_HOURS later, here and at the provider."""

import logging
import time
from typing import Any

from cryptography.exceptions import InvalidTag
from django.conf import settings
from django.http import HttpRequest

from console.dashboard.auth.oidc.errors import ProviderRefused, ProviderUnavailable
from console.dashboard.auth.session_policy import PROVIDER_KEY
from core.lib.keyring import UnknownKey
from core.lib.sealed import seal, unseal
from core.workspaces.models import User

SEAL_PURPOSE = "id-token"
# A longer one would not fit into the address of the sign-out page, which works without.
MAX_HINT_LENGTH = 4096

log = logging.getLogger("postrider.accounts")


def session_record(token: dict[str, Any], user: User, *, has_mfa: bool) -> dict[str, Any]:
    """Return what a session keeps of its sign-in: until when it lasts, the second factor, and the ID token, sealed.

    The provider ends the session of the person that the token names without asking.
    """
    id_token = token["id_token"] if len(token["id_token"]) <= MAX_HINT_LENGTH else ""
    return {
        "user": user.pk,
        "mfa": has_mfa and settings.OIDC_SECOND_FACTOR == "idp",
        "until": time.time() + settings.OIDC_SESSION_HOURS * 3600,
        "hint": seal(id_token.encode(), purpose=SEAL_PURPOSE, row=str(user.pk)),
    }


def provider_sign_out_url(request: HttpRequest, return_path: str) -> str:
    """Return the page of the provider that ends the session there; empty if there is none."""
    record = request.session.get(PROVIDER_KEY)
    if not settings.OIDC_ISSUER or not record:
        return ""
    from console.dashboard.auth.oidc.provider import Provider  # noqa: PLC0415 - see console.dashboard.auth.oidc.errors

    try:
        hint = unseal(record["hint"], purpose=SEAL_PURPOSE, row=str(record["user"])).decode()
        return Provider().sign_out_url(f"{settings.PUBLIC_URL}{return_path}", id_token=hint)
    except (ProviderUnavailable, ProviderRefused, InvalidTag, UnknownKey) as error:
        details = {"reason": f"{type(error).__name__}: {error}"[:300]}
        log.warning("the session at the identity provider was not ended", extra={"data": details})
        return ""
