"""Email address confirmation for new accounts (docs/decisions/0055)."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from console.dashboard.auth.account_emails import send_confirmation
from console.dashboard.auth.rendering import PageRenderer, expired_link_page
from console.dashboard.auth.throttle import EMAIL_CONFIRMATION, throttle_account, throttled_message
from core.workspaces.account_status import (
    InvalidConfirmationLink,
    confirm_address,
    discard_account,
    is_unconfirmed,
    read_confirmation_token,
)
from core.workspaces.models import User


def confirm_email(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Confirm the address of the signed-in account, or discard the account without signing in.

    Only a POST changes anything: mail scanners follow links (docs/decisions/0090).
    """
    try:
        account = read_confirmation_token(request.GET.get("token", ""))
    except InvalidConfirmationLink:
        advice = _("It has expired or is incomplete. Sign in to request a new one.")
        return expired_link_page(request, page, title=_("This link is no longer valid"), advice=advice)
    if "discard" in request.POST:
        return _discard(request, account)
    if request.method != "POST" or request.user != account:
        title = _("Confirm your email address")
        context = {"account": account, "can_discard": is_unconfirmed(account)}
        return page(request, "dashboard/email_confirmation.html", title=title, **context)
    confirm_address(account)
    messages.success(request, _("%(address)s is confirmed. Your API keys are now active.") % {"address": account.email})
    return redirect("dashboard:index")


def _discard(request: HttpRequest, account: User) -> HttpResponse:
    if discard_account(account):
        messages.success(request, _("The account of %(address)s was deleted.") % {"address": account.email})
    else:
        messages.error(request, _("This account is already confirmed. It was not deleted."))
    return redirect("dashboard:login")


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
