"""Request log: the API requests of the workspace in the last days (docs/decisions/0265)."""

from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.ui.listing import ListPage, list_page
from console.dashboard.ui.scoping import ScopedAdmin, rows_in_workspace
from core.lib.ids import is_id
from core.request_log.models import ApiRequest
from core.request_log.tasks import MAX_REQUESTS, RETENTION_DAYS
from core.workspaces.models import ApiKey
from emails.models import Email

RESULTS = {
    "succeeded": (_("Succeeded"), Q(status__lt=400)),
    "refused": (_("Refused (4xx)"), Q(status__gte=400, status__lt=500)),
    "failed": (_("Failed (5xx)"), Q(status__gte=500)),
}
MAX_SEARCH_LENGTH = 200


class RequestSection(ScopedAdmin):
    slug, title = "requests", _("API requests")
    empty = (
        "receipt_long",
        _("No requests yet"),
        _("Requests with your API keys are listed here, within seconds, for seven days."),
    )
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiRequest]:
        """Return the requests that match the query, newest first; its unknown values match none."""
        rows: QuerySet[ApiRequest] = super().get_queryset(request).order_by(*self.ordering)
        query = request.GET
        if query.get("result"):
            _label, condition = RESULTS.get(query["result"], ("", Q(pk=None)))
            rows = rows.filter(condition)
        for name, field, prefix in (("key", "key", "key_"), ("email", "email_id", "")):
            if query.get(name):
                rows = rows.filter(**{field: query[name]}) if is_id(query[name], prefix=prefix) else rows.none()
        return rows.filter(search_condition(query["search"])) if query.get("search") else rows

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        workspace = current_workspace(request)
        listing = list_page(request, self.get_queryset(request).select_related("key"))
        return self.page(
            request,
            "dashboard/requests/list.html",
            title=self.title,
            listing=listing,
            existing_emails=_existing_emails(workspace, listing, request.GET.get("email", "")),
            results={name: label for name, (label, _condition) in RESULTS.items()},
            keys=rows_in_workspace(workspace, ApiKey.objects.order_by("name")),
            query={name: request.GET.get(name, "") for name in ("result", "key", "email", "search")},
            max_requests=MAX_REQUESTS,
            days=RETENTION_DAYS,
        )


def search_condition(text: str) -> Q:
    """Return the condition for a request id, a problem code, a status, or a part of the path."""
    text = text.replace("\0", "").strip()[:MAX_SEARCH_LENGTH]
    if is_id(text, prefix="req_"):
        return Q(id=text)
    status = Q(status=int(text)) if text.isascii() and text.isdigit() and len(text) == 3 else Q()
    return status | Q(code=text) | Q(path__icontains=text)


def _existing_emails(workspace: Any, listing: ListPage, wanted: str) -> set[str]:
    """Return the ids of the linked emails that are not deleted. wanted: the text of the filter."""
    ids = {row.email_id for row in listing.rows if row.email_id} | ({wanted} if is_id(wanted) else set())
    return set(rows_in_workspace(workspace, Email.objects.filter(id__in=ids)).values_list("id", flat=True))
