"""Audit log of the workspace. Owners only: it shows IP and email addresses (docs/decisions/0137)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.dashboard.auth.current_workspace import is_owner
from console.dashboard.ui.csv_files import csv_response
from console.dashboard.ui.listing import list_page
from console.dashboard.ui.scoping import ScopedAdmin
from core.lib.datetimes import format_datetime
from core.workspaces.models import AuditEntry

PAGE_ROWS = 1_000
EXPORT_COLUMNS = ("createdAt", "action", "about", "actorKind", "actor", "ipAddress")


@dataclass(frozen=True)
class AuditCategory:
    """A filter of the log: the actions whose names begin with one of the prefixes."""

    label: str | Promise
    prefixes: tuple[str, ...]

    @property
    def actions(self) -> list[str]:
        return [action for action in AuditEntry.Action.values if action.startswith(self.prefixes)]


CATEGORIES = {
    "keys": AuditCategory(_("API keys"), ("key_",)),
    "templates": AuditCategory(_("Templates"), ("template_",)),
    "domains": AuditCategory(_("Domains"), ("domain_",)),
    "webhooks": AuditCategory(_("Webhooks"), ("webhook_",)),
    "receiving": AuditCategory(_("Receiving"), ("route_", "sender_", "inbound_", "forward_")),
    "streams": AuditCategory(_("Streams"), ("stream_",)),
    "alerts": AuditCategory(_("Alerts"), ("alert_",)),
    "suppressions": AuditCategory(_("Suppressions"), ("suppression_",)),
    "members": AuditCategory(_("Members"), ("member_", "invitation_")),
    "sign-ins": AuditCategory(_("Sign-ins"), ("sign", "identity_", "staff_")),
    "workspace": AuditCategory(
        _("Workspace"),
        (
            "workspace_",
            "rules_",
            "suspension_",
            "owners_",
            "plan_",
            "email",
            "address_",
            "erasure_",
            "export_",
            "sending_",
            "transport_",
            "receiver_",
        ),
    ),
}


class AuditSection(ScopedAdmin):
    slug, title = "audit", _("Audit log")
    empty = ("history", _("No entries yet"), _("Changes made by members and API keys are listed here."))
    ordering = ("-id",)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_owner(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_owner(request) and super().has_view_permission(request, obj)

    def routes(self) -> list[URLPattern]:
        return [self.route("export/", "export", self.export_view)]

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        """Return the entries of the requested category, newest first; all of them for an unknown one."""
        entries: QuerySet[AuditEntry] = super().get_queryset(request).order_by(*self.ordering)
        category = CATEGORIES.get(request.GET.get("category", ""))
        return entries.filter(act__in=category.actions) if category else entries

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not is_owner(request):
            raise PermissionDenied
        return self.page(
            request,
            "dashboard/audit/list.html",
            title=self.title,
            listing=list_page(request, self.get_queryset(request)),
            categories=CATEGORIES,
            category=request.GET.get("category", ""),
            export_url=self.url("export"),
        )

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        if not is_owner(request):
            raise PermissionDenied
        rows = (_export_row(entry) for entry in _newest_first(self.get_queryset(request)))
        return csv_response(request, "audit.csv", columns=EXPORT_COLUMNS, rows=rows)


def _newest_first(entries: QuerySet[AuditEntry]) -> Iterator[AuditEntry]:
    page = list(entries[:PAGE_ROWS])
    while page:
        yield from page
        page = list(entries.filter(id__lt=page[-1].pk)[:PAGE_ROWS])


def _export_row(entry: AuditEntry) -> tuple[str, ...]:
    # Staff accounts are not identified to workspaces.
    is_staff = entry.actor_kind == AuditEntry.ActorKind.STAFF
    actor, address = ("", "") if is_staff else (entry.actor, entry.address or "")
    return format_datetime(entry.created_at), entry.act, entry.about, entry.actor_kind, actor, address
