"""Pages for sign-ins with the identity provider that fail: one sentence, and the id of the request for the log."""

import logging

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.auth.oidc.accounts import SignInDenied
from console.dashboard.auth.oidc.errors import ProviderRefused, ProviderUnavailable
from console.dashboard.auth.oidc.metrics import count_sign_in
from console.dashboard.auth.passwords import allows_passwords
from console.dashboard.auth.rendering import PageRenderer
from core.api.request_ids import current_request_id
from core.workspaces.access_rules import InvalidRolesFile
from core.workspaces.audit import AuditAction, record_action

UNAVAILABLE = gettext_lazy("%(label)s does not answer: try again in a minute.")
REFUSED = gettext_lazy("The sign-in with %(label)s failed, was cancelled, or took longer than ten minutes.")
NOT_CONFIGURED = gettext_lazy("The roles file of this service is not valid.")
FAILURES = {
    ProviderUnavailable: (UNAVAILABLE, 503),
    ProviderRefused: (REFUSED, 403),
    InvalidRolesFile: (NOT_CONFIGURED, 500),
}

log = logging.getLogger("postrider.accounts")


def failure_page(request: HttpRequest, page: PageRenderer, error: Exception) -> HttpResponse:
    """Return the page for an error of FAILURES or SignInDenied. The page does not show the error, the log does."""
    if isinstance(error, SignInDenied):
        text, status = error.text, 403
        about = f"{error.who}: {text % {'label': settings.OIDC_LABEL}}"
        record_action(None, AuditAction.SIGN_IN_REFUSED, about=about)
    else:
        text, status = FAILURES[type(error)]
    count_sign_in("unavailable" if status == FAILURES[ProviderUnavailable][1] else "refused")
    details = {"reason": str(error)[:300]}
    log.warning("a sign-in with the identity provider failed", extra={"data": details})
    return message_page(request, page, text % {"label": settings.OIDC_LABEL}, status=status)


def message_page(request: HttpRequest, page: PageRenderer, text: str, *, status: int) -> HttpResponse:
    response = page(
        request,
        "dashboard/oidc_failure.html",
        title=_("You are not signed in"),
        text=text,
        request_id=current_request_id(),
        has_password_form=allows_passwords(request.current_app),
    )
    response.status_code = status
    return response
