"""Exports of people: the confirmation, the state and the file of each (docs/decisions/0373)."""

from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.pages.emails.erasures import RECORDS, labelled_counts
from console.dashboard.pages.emails.recipient_history import recipient_url
from console.dashboard.ui.confirm import Confirmation
from console.privacy.downloads import export_response
from console.privacy.exports import open_export
from console.privacy.models import SubjectExport
from core.api.errors import RateLimitExceeded

KINDS: dict[str, str | Promise] = {
    **RECORDS,
    "auditEntries": gettext_lazy("Audit entries"),
    "suppressions": gettext_lazy("Suppressions"),
    "privacyRequests": gettext_lazy("Other exports and erasures"),
    "accounts": gettext_lazy("Memberships and invitations"),
    "configuration": gettext_lazy("Settings with the address"),
}


def confirm_export(address: str) -> Confirmation:
    lead = _(
        "A file is made of all data of this address: sent and received emails to, from and about it, with their events "
        "and webhook deliveries. Owners can download it for seven days."
    )
    return Confirmation(lead, _("Export"), recipient_url(address), about=address)


def describe_export(export: SubjectExport) -> dict[str, Any]:
    """Return the context of the page of an export."""
    return {"export": export, "counts": labelled_counts(export, KINDS)}


def download_export(request: HttpRequest, export: SubjectExport) -> HttpResponseBase:
    """Return the file, or the reason why the workspace has to wait for others. Raises Http404 if there is none."""
    if not open_export(export):
        raise Http404
    try:
        return export_response(request, export)
    except RateLimitExceeded as problem:
        return HttpResponse(str(problem.detail), content_type="text/plain", status=HTTPStatus.TOO_MANY_REQUESTS)
