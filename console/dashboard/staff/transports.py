"""Transports page of the staff admin: states, and taking a transport out of use (docs/decisions/0216)."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from console.dashboard.staff.queue import refuse_without
from console.dashboard.ui.confirm import Confirmation
from domains.models import Domain
from domains.services import find_unaligned
from emails.sending.transport_status import drain_transport, read_statuses, resume_transport

# Domains that the page shows of those that are not aligned with a transport.
MAX_DOMAINS = 20
CHANGE = "emails.change_transportuse"


def transports_page(request: HttpRequest, context: dict[str, Any]) -> TemplateResponse:
    """Show the state of each transport, and the domains that are not aligned with it."""
    rows = [(status, find_unaligned(Domain.objects.all(), spf=status.spec.spf)) for status in read_statuses()]
    shown = [{"status": status, "unaligned": names[:MAX_DOMAINS], "count": len(names)} for status, names in rows]
    page = {
        **context,
        "title": _("Transports"),
        "transports": shown,
        "may_change": request.user.has_perm(CHANGE),
    }
    return TemplateResponse(request, "dashboard/transports.html", page)


def drain_page(request: HttpRequest, context: dict[str, Any], name: str) -> HttpResponse:
    """Ask before a transport is drained, then drain it."""
    _refuse(request, name)
    if request.method == "POST":
        drain_transport(name)
        messages.success(request, _("%(name)s gets no new email.") % {"name": name})
        return redirect("admin:transports")
    lead = _(
        "No new email is sent by this transport, within seconds and until you resume it. Deliveries in progress "
        "finish. Email goes to the other transports of its route, or waits."
    )
    confirmation = Confirmation(lead, _("Drain"), reverse("admin:transports"), about=name, is_danger=True)
    page = {**context, "title": _("Drain a transport"), "confirmation": confirmation}
    return TemplateResponse(request, "dashboard/confirm.html", page)


def resume_page(request: HttpRequest, name: str) -> HttpResponse:
    """Let a transport be used again."""
    _refuse(request, name)
    resume_transport(name)
    messages.success(request, _("%(name)s is used again.") % {"name": name})
    return redirect("admin:transports")


def _refuse(request: HttpRequest, name: str) -> None:
    refuse_without(request, CHANGE)
    if name not in settings.TRANSPORTS.transports:
        raise Http404
