"""Prove that the address of an account is one's own (docs/decisions/0055)."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from dashboard.auth.account_emails import send_proof
from dashboard.auth.rendering import PageRenderer
from dashboard.auth.throttle import PROOF, account_wait_seconds, too_fast
from workspaces.account_status import ProofGone, prove_address, read_proof
from workspaces.models import User


def prove(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Show a button; only pressing it counts, for mail systems open links by themselves."""
    try:
        user = read_proof(request.GET.get("token", ""))
    except ProofGone:
        response = page(request, "dashboard/link_gone.html", title=_("This link does not work any more"))
        response.status_code = 410
        return response
    if request.method != "POST":
        return page(request, "dashboard/proof.html", title=_("Confirm your address"), email=user.email)
    prove_address(user)
    messages.success(request, _("%(address)s is confirmed. Your API keys work now.") % {"address": user.email})
    return redirect("dashboard:index")


@require_POST
def ask_for_proof(request: HttpRequest) -> HttpResponse:
    """Send the link again."""
    user = request.user
    assert isinstance(user, User)
    wait = account_wait_seconds(request, PROOF, account=user.email)
    if wait:
        messages.error(request, too_fast(wait))
        return redirect("dashboard:index")
    with transaction.atomic():
        send_proof(user)
    messages.success(request, _("A new link is on its way to %(address)s.") % {"address": user.email})
    return redirect("dashboard:index")
