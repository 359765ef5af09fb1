"""Inbox: the emails that stay here, because of the inbox transport or of RECIPIENTS."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.ui.confirm import Confirmation
from console.dashboard.ui.inbox import uses_inbox
from console.dashboard.ui.listing import list_page
from console.dashboard.ui.preview import preview_response, shown_source, source_response
from console.dashboard.ui.refresh import refresh_of
from console.dashboard.ui.scoping import ScopedAdmin
from core.lib.translation import translate
from interfaces.inbound.inbox.html_check import check_html
from interfaces.inbound.inbox.models import CaughtMail
from interfaces.inbound.inbox.reading import read_mail
from interfaces.inbound.inbox.retention import clear_inbox

MAX_SEARCH_LENGTH = 200
NEWEST = 20_000


class InboxSection(ScopedAdmin):
    slug, title = "inbox", _("Inbox")
    empty = (
        "inbox",
        _("No emails yet"),
        _("Emails you send are captured here instead of being delivered."),
    )
    ordering = ("-received_at", "-id")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("clear/", "clear", self.clear_view),
            self.route("<str:object_id>/", "change", self.detail_view),
            self.route("<str:object_id>/preview/", "preview", self.preview_view),
            self.route("<str:object_id>/source/", "source", self.source_view),
        ]

    def route(self, route: str, name: str, view: Callable[..., Any]) -> URLPattern:
        return super().route(route, name, _with_inbox_only(view))

    def get_queryset(self, request: HttpRequest) -> QuerySet[CaughtMail]:
        # A source may have 40 MB; lists do not need it.
        return super().get_queryset(request).defer("source")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        search = request.GET.get("search", "")[:MAX_SEARCH_LENGTH].replace("\0", "")
        rows = self.get_queryset(request).order_by(*self.ordering)
        listing = list_page(request, search_newest(rows, search) if search else rows)
        refresh = refresh_of([mail.id for mail in listing.rows], regions=("rows",))
        return refresh.unchanged(request) or self.page(
            request,
            "dashboard/inbox/list.html",
            title=self.title,
            listing=listing,
            # A search reads many emails.
            refresh=None if search else refresh,
            search=search,
            clear_url=self.url("clear"),
        )

    def clear_view(self, request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            lead = gettext("All emails in the inbox will be deleted. They remain listed under Emails.")
            confirmation = Confirmation(lead, gettext("Delete all"), self.list_url, is_danger=True)
            return self.confirm(request, gettext("Delete all emails in the inbox"), confirmation)
        count = clear_inbox(current_workspace(request).id)
        text = ngettext("%(count)s email was deleted.", "%(count)s emails were deleted.", count)
        messages.success(request, text % {"count": count})
        return redirect(self.list_url)

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        mail = self.find(request, object_id)
        source = bytes(mail.source)
        text, is_cut = shown_source(source)
        read = read_mail(source)
        return self.page(
            request,
            "dashboard/inbox/detail.html",
            title=mail.subject,
            mail=mail,
            read=read,
            error=translate(read.error) if mail.keeps_content else "",
            problems=check_html(read.html, has_text=bool(read.text)),
            source=text,
            is_cut=is_cut,
            size_bytes=len(source),
            preview_url=self.url("preview", mail.id),
            source_url=self.url("source", mail.id),
        )

    def preview_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        html = read_mail(bytes(self.find(request, object_id).source)).html
        if not html:
            raise Http404
        return preview_response(html)

    def source_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        mail = self.find(request, object_id)
        return source_response(bytes(mail.source), filename=f"{mail.id}.eml")


def search_newest(rows: QuerySet[CaughtMail], search: str) -> QuerySet[CaughtMail]:
    """Filter to the newest NEWEST emails whose recipient, sender or subject contains the text, regardless of case."""
    matching = Q(recipient__icontains=search) | Q(sender__icontains=search) | Q(subject__icontains=search)
    return rows.filter(matching, id__in=rows.values("id")[:NEWEST])


def _with_inbox_only(view: Callable[..., Any]) -> Callable[..., Any]:
    """Raise Http404 unless emails stay in the inbox."""

    @wraps(view)
    def guarded(request: HttpRequest, *arguments: Any, **named: Any) -> Any:
        if not uses_inbox(request):
            raise Http404
        return view(request, *arguments, **named)

    return guarded
