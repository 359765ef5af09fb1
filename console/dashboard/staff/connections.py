"""Page of the staff admin about the destinations that the installation connects to (docs/decisions/0377)."""

from typing import Any

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from console.privacy.connections import KINDS


def connections_page(request: HttpRequest, context: dict[str, Any]) -> TemplateResponse:
    """Show each kind of destination, with those of the settings in force. context: that of each page of the site."""
    rows = [{"kind": kind, "destinations": list(kind.find())} for kind in KINDS]
    page = {**context, "title": _("Outbound connections"), "rows": rows}
    return TemplateResponse(request, "dashboard/staff/connections.html", page)
