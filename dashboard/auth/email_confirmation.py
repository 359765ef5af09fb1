"""Email address confirmation for new accounts (docs/decisions/0055)."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from dashboard.auth.account_emails import send_confirmation
from dashboard.auth.rendering import PageRenderer
from dashboard.auth.throttle import EMAIL_CONFIRMATION, throttle_account, throttled_message
from workspaces.account_status import InvalidConfirmationLink, confirm_address, read_confirmation_token
from workspaces.models import User


def confirm_email(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Confirm the address when the button is pressed: mail scanners follow links, so a GET changes nothing."""
    try:
        user = read_confirmation_token(request.GET.get("token", ""))
    except InvalidConfirmationLink:
        response = page(request, "dashboard/link_expired.html", title=_("This link is no longer valid"))
        response.status_code = 410
        return response
    if request.method != "POST":
        return page(
            request, "dashboard/email_confirmation.html", title=_("Confirm your email address"), email=user.email
        )
    confirm_address(user)
    messages.success(request, _("%(address)s is confirmed. Your API keys are now active.") % {"address": user.email})
    return redirect("dashboard:index")


@require_POST
def resend_confirmation(request: HttpRequest) -> HttpResponse:
    """Send another confirmation link."""
    user = request.user
    assert isinstance(user, User)
    wait_seconds = throttle_account(request, EMAIL_CONFIRMATION, account=user.email)
    if wait_seconds:
        messages.error(request, throttled_message(wait_seconds))
        return redirect("dashboard:index")
    with transaction.atomic():
        send_confirmation(user)
    messages.success(request, _("We sent a new link to %(address)s.") % {"address": user.email})
    return redirect("dashboard:index")
