"""Sign-in links from the command line, for when the identity provider fails (docs/decisions/0202)."""

import hashlib
import struct
import time
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from console.dashboard.auth.rendering import PageRenderer, expired_link_page
from console.dashboard.auth.session_policy import LINK_KEY
from console.dashboard.auth.signin import continue_sign_in
from core.lib.tokens import InvalidToken, make_token, read_token
from core.workspaces.audit import AuditAction, record_action, record_for_workspaces
from core.workspaces.models import User

PURPOSE = "sign-in-link"
LINK_LIFETIME = timedelta(minutes=10)
# User id, expiry (seconds since 1970), digest of the account's state, which a sign-in changes: a link works once.
PAYLOAD = struct.Struct(">QQ16s")


@transaction.atomic
def create_sign_in_link(user: User) -> str:
    """Return a URL that signs in to the account once, within ten minutes."""
    expires_at = int(time.time() + LINK_LIFETIME.total_seconds())
    token = make_token(PAYLOAD.pack(user.pk, expires_at, _state_digest(user)), purpose=PURPOSE)
    record_action(None, AuditAction.SIGN_IN_LINK_CREATED, about=user.email)
    record_for_workspaces(user, AuditAction.SIGN_IN_LINK_CREATED, about=user.email)
    site = "admin" if user.is_staff else "dashboard"
    return f"{settings.PUBLIC_URL}{reverse(f'{site}:sign_in_link')}?{urlencode({'token': token})}"


def sign_in_link(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Sign in with a link from the command line. Only a POST uses it up: programs open links, too."""
    with transaction.atomic():
        user = _find_user(request.GET.get("token", ""))
        if user and request.method == "POST":
            User.objects.filter(pk=user.pk).update(last_login=Now())
            home = reverse("admin:index", current_app=request.current_app)
            return continue_sign_in(request, user, next_url=home, origin={LINK_KEY: True})
    if user is None:
        advice = _("A sign-in link works once and expires after ten minutes.")
        return expired_link_page(request, page, title=_("This link is no longer valid"), advice=advice)
    return page(request, "dashboard/sign_in_link.html", title=_("Sign in"), account=user)


def _find_user(token: str) -> User | None:
    """Return the account of a valid link, locked: of two requests with one link, the second finds it used."""
    try:
        user_id, expires_at, digest = PAYLOAD.unpack(read_token(token, purpose=PURPOSE))
    except (InvalidToken, struct.error):
        return None
    user = User.objects.select_for_update(no_key=True).filter(pk=user_id, is_active=True).first()
    is_valid = user is not None and time.time() < expires_at and digest == _state_digest(user)
    return user if is_valid else None


def _state_digest(user: User) -> bytes:
    return hashlib.sha256(f"{user.last_login}:{user.get_session_auth_hash()}".encode()).digest()[:16]
