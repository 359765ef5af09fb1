"""Sessions that began with a password end where passwords are not accepted (docs/decisions/0202)."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.middleware import AuthenticationMiddleware, get_user
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from console.dashboard.auth.passwords import may_use_password
from core.workspaces.models import User

# Members of a session that began without a password: the record of the identity provider, a link of the command line.
PROVIDER_KEY, LINK_KEY = "provider", "sign_in_link"


class SessionPolicyMiddleware(AuthenticationMiddleware):
    """Django's authentication, which also ends sessions that PASSWORDS does not allow."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: _session_user(request))  # type: ignore[assignment]  # as Django does


def origin_of(session: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that say how a session began; none for a password, and for one of an earlier version."""
    return {name: session[name] for name in (PROVIDER_KEY, LINK_KEY) if session.get(name)}


def is_allowed(user: User, origin: Mapping[str, Any]) -> bool:
    """Return whether a session of the account that began so may continue."""
    return bool(origin) or may_use_password(user)


def _session_user(request: HttpRequest) -> User | AnonymousUser:
    user = get_user(request)
    if isinstance(user, User) and not is_allowed(user, origin_of(request.session)):
        request.session.flush()
        return AnonymousUser()
    return user
