"""Emails in the staff admin: delivery status and addresses, never content."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from core.lib.email_addresses import normalize_search
from core.lib.translation import translate
from core.workspaces.admin import ReadOnlyAdmin, state_badge, state_column
from core.workspaces.audit import AuditAction, record_action
from emails.listing.search import filter_by_id, filter_by_text
from emails.models import Email
from emails.sending.sending_checks import find_wait
from events.kinds import NEXT_TRANSPORT, TRANSPORT

MAX_ATTEMPTS = 50
MAX_RECIPIENTS = 100
MAX_EVENTS = 250
MAX_SHOWN_ADDRESSES = 100
MAX_SEARCH_LENGTH = 200


@admin.register(Email)
class EmailAdmin(ReadOnlyAdmin):
    # Counting millions of rows for page numbers takes seconds.
    paginator = InfinitePaginator
    show_full_result_count = False
    list_display = ("subject", "addressees", "workspace", "from_domain", "state", "created_at")
    # Shows the search field; get_search_results uses the index of search_text instead.
    search_fields = ("search_text",)
    search_help_text = _("Recipient, subject or email ID, in all workspaces. Searches are recorded in the audit log.")
    change_form_outer_before_template = "dashboard/staff/email.html"
    help_texts: ClassVar = {"sender": _("the From address, with its name")}
    state = state_column()
    list_filter = ("status",)
    list_select_related = ("workspace",)
    sortable_by = ()
    # Ids begin with the time, and only their index spans all workspaces.
    ordering = ("-id",)
    fields = (
        "id",
        "workspace",
        "sender",
        "to",
        "subject",
        "state",
        "created_at",
        "scheduled_for",
        "sent_at",
        "delivered_at",
        "retry_count",
        "error_message",
        "waiting_for",
        "transports",
    )

    @display(description=_("waiting for"))
    def waiting_for(self, email: Email) -> str:
        wait = find_wait(email)
        return translate(wait.detail) if wait else "-"

    @display(description=_("transports"))
    def transports(self, email: Email) -> str:
        """The attempts by named transports, oldest first; the staff see them whatever SHOW_TRANSPORTS is."""
        named = email.events.filter(**{f"payload__{TRANSPORT}__isnull": False})[:MAX_ATTEMPTS]
        return "; ".join(_describe_attempt(event.kind, event.payload) for event in named) or "-"

    @display(description=_("to"))
    def addressees(self, email: Email) -> str:
        return email.addressees[:MAX_SHOWN_ADDRESSES]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list; a search is recorded in the audit log of the installation, because it may name a person."""
        text = request.GET.get("q", "").strip()
        if text and self.has_view_permission(request):
            record_action(None, AuditAction.EMAILS_SEARCHED, about=text[:MAX_SEARCH_LENGTH])
        return super().changelist_view(request, extra_context)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Email], search_term: str
    ) -> tuple[QuerySet[Email], bool]:
        """Return the emails with an id, a recipient in To, or a part of the subject; of the newest matches."""
        text = search_term.strip().replace("\0", "")[:MAX_SEARCH_LENGTH]
        if not text:
            return queryset, False
        named = filter_by_id(queryset, text)
        return (named if named.exists() else filter_by_text(queryset, normalize_search(text))), False

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Show an email and record the view in the audit log, which the workspace's owner can read."""
        email = self.get_object(request, object_id) if self.has_view_permission(request) else None
        if email:
            record_action(email.workspace, AuditAction.EMAIL_VIEWED, about=email.id)
            extra = {"recipients": describe_recipients(email), "events": describe_events(email)}
            kwargs["extra_context"] = {**extra, **(kwargs.get("extra_context") or {})}
        response: HttpResponseBase = super().change_view(request, object_id, *args, **kwargs)
        return response


def describe_recipients(email: Email) -> list[Any]:
    """Return the first recipients, each with its state as a badge."""
    recipients: list[Any] = list(email.recipients.all()[:MAX_RECIPIENTS])
    for recipient in recipients:
        recipient.badge = state_badge(recipient.state)
    return recipients


def describe_events(email: Email) -> list[Any]:
    """Return the first events, each with its address and its details as text; without URLs, which may be personal."""
    events: list[Any] = list(email.events.all()[:MAX_EVENTS])
    for event in events:
        event.badge, event.address = state_badge(event.kind), event.payload.get("to") or ""
        values = (event.payload.get(name) for name in ("code", "enhancedCode", "message", "reason"))
        event.details = " ".join(str(value) for value in values if value)
    return events


def _describe_attempt(kind: str, payload: dict[str, Any]) -> str:
    """Return an attempt as text, such as `own: deferred (login_refused) → relay`."""
    reason = f" ({payload['reason']})" if payload.get("reason") else ""
    following = f" → {payload[NEXT_TRANSPORT]}" if payload.get(NEXT_TRANSPORT) else ""
    return f"{payload[TRANSPORT]}: {kind}{reason}{following}"
