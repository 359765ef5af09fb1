"""Audit log of the staff admin: search and export."""

from collections.abc import Iterator
from ipaddress import ip_address
from itertools import islice
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path

from console.dashboard.ui.csv_files import EXPORT_ROWS
from core.api.transfers import csv_file
from core.lib.datetimes import format_datetime
from core.workspaces.admin import AuditEntryAdmin
from core.workspaces.models import AuditEntry
from emails.listing.csv_lines import csv_lines

EXPORT_COLUMNS = ("createdAt", "workspaceId", "workspace", "action", "about", "actorKind", "actor", "ipAddress")
# A search without an index reads this many of the newest entries.
SEARCHED_ENTRIES = 100_000
# Exports of the staff share the transfers at once, as those of a workspace do.
STAFF_SHARE = "staff"


class SearchableAuditAdmin(AuditEntryAdmin):
    # Read by get_search_results; the field of a search appears with it.
    search_fields = ("about", "actor", "workspace__name")
    list_before_template = "dashboard/staff/audit.html"

    def get_urls(self) -> list[URLPattern]:
        export = self.admin_site.admin_view(self.export_view)
        return [path("export/", export, name="workspaces_auditentry_export"), *super().get_urls()]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Return the newest entries that contain the text in details, actor, IP address or name of the workspace."""
        text = search_term.strip().replace("\0", "")
        if not text:
            return queryset, False
        last = AuditEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0
        found = Q(about__icontains=text) | Q(actor__icontains=text) | Q(workspace__name__icontains=text)
        if is_address(text):
            found |= Q(address=text)
        return queryset.filter(found, id__gt=last - SEARCHED_ENTRIES), False

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Return the entries of the list, with its filters and its search, as CSV. Raises Http404 for invalid ones."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            entries = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters as error:
            raise Http404 from error
        lines = csv_lines(EXPORT_COLUMNS, islice(export_rows(entries), EXPORT_ROWS))
        headers = {"Content-Disposition": 'attachment; filename="audit.csv"'}
        return csv_file(request, lines, workspace_id=STAFF_SHARE, headers=headers)


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def export_rows(entries: QuerySet[Any]) -> Iterator[tuple[str, ...]]:
    for entry in entries.select_related("workspace").iterator():
        name, about = entry.workspace.name if entry.workspace else "", entry.about
        values = (entry.workspace_id or "", name, entry.act, about, entry.actor_kind, entry.actor, entry.address or "")
        yield format_datetime(entry.created_at), *values
