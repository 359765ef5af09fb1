"""Postmark's API: received messages, https://postmarkapp.com/developer/api/messages-api#inbound-message-search."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.db.models import Exists, OuterRef, Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from core.lib.email_addresses import normalize_search
from core.lib.ids import uuid_text
from core.workspaces.api.authentication import key_of
from interfaces.compat.postmark import filters, requests
from interfaces.compat.postmark.errors import MESSAGE_QUERY
from interfaces.compat.postmark.receiving.format import STREAM, header_members, message_members
from interfaces.compat.postmark.resources import Resource
from interfaces.compat.postmark.views import PostmarkViewSet
from interfaces.compat.views import bounded_count
from receiving.inlining import InlinedEmail
from receiving.models import ReceivedEmail
from receiving.rendering import ReceivedItemSerializer, ReceivedSerializer
from receiving.services import bypass_block, redeliver_email
from receiving.states import ReceivedStatus
from webhooks.models import WebhookDelivery, WebhookDeliveryStatus

ReceivedFilter = Callable[[QuerySet[ReceivedEmail], Any], QuerySet[ReceivedEmail]]
PUBLISHED = Q(status__in=[ReceivedStatus.PROCESSED, ReceivedStatus.UNREADABLE])
# A message whose webhook was not accepted: a further attempt follows, or none.
STATUSES: dict[str, Q] = {
    "blocked": Q(status=ReceivedStatus.BLOCKED),
    "queued": Q(status=ReceivedStatus.STORED),
    "scheduled": PUBLISHED & Q(is_pending=True),
    "failed": PUBLISHED & Q(is_pending=False, is_exhausted=True),
    "processed": PUBLISHED & Q(is_pending=False, is_exhausted=False),
}
BLOCKED_REASONS = {
    "sender_blocked": "The sender is blocked by an inbound rule.",
    "not_authenticated": "The sender is not proven.",
    "spam": "The spam score has reached the threshold.",
    "not_a_reply": "The message answers no email.",
}


def with_deliveries(emails: QuerySet[ReceivedEmail]) -> QuerySet[ReceivedEmail]:
    """Annotate emails with whether a delivery of their event is pending, or has ended without success."""
    deliveries = WebhookDelivery.objects.filter(event=OuterRef("event_id"))
    return emails.annotate(
        is_pending=Exists(deliveries.filter(status=WebhookDeliveryStatus.PENDING)),
        is_exhausted=Exists(deliveries.filter(status=WebhookDeliveryStatus.EXHAUSTED)),
    )


def _contains(column: str) -> ReceivedFilter:
    return lambda emails, text: emails.filter(**{f"{column}__icontains": normalize_search(text)})


FILTERS: dict[str, ReceivedFilter] = {
    "recipient": _contains("recipient"),
    "fromemail": _contains("sender"),
    "subject": _contains("subject"),
    "mailboxhash": lambda emails, text: emails.filter(tag=text),
    # Tags of sent emails have no counterpart.
    "tag": lambda emails, _: emails.none(),
    "status": lambda emails, name: emails.filter(STATUSES.get(name.lower(), Q(pk__in=()))),
    "fromdate": lambda emails, start: emails.filter(received_at__gte=start),
    "todate": lambda emails, end: emails.filter(received_at__lte=end),
}
# Filters without an index, which search the newest emails only.
UNINDEXED = frozenset({"recipient", "fromemail", "subject", "mailboxhash", "status"})


class PostmarkInboundViewSet(PostmarkViewSet[ReceivedEmail]):
    queryset = ReceivedEmail.objects.all()
    id_prefix = "inb_"
    sending_actions = frozenset({"list", "details"})
    query_errors: ClassVar = {"list": MESSAGE_QUERY}

    def get_queryset(self) -> QuerySet[ReceivedEmail]:
        emails: Any = super().get_queryset()
        emails = emails.for_scope(key_of(self.request).scope, self.limits)
        return with_deliveries(
            emails.select_related("message") if self.action == "details" else emails.without_content()
        )

    def list(self, request: Request) -> Response:
        page, query = requests.read_slice(request), filters.read_filters(request, known=FILTERS)
        rows = filter_received(self.get_queryset(), query)
        messages = [message_resource(email) for email in rows.order_by("-received_at", "-id")[page]]
        return Response({"TotalCount": bounded_count(rows), "InboundMessages": messages})

    def details(self, request: Request, pk: str) -> Response:
        return Response(details_resource(self.find(pk)))

    def bypass(self, request: Request, pk: str) -> Response:
        email = bypass_block(self.find(pk))
        return Response({"ErrorCode": 0, "Message": f"Successfully bypassed message: {_shown_id(email)}."})

    def retry(self, request: Request, pk: str) -> Response:
        email = self.find(pk)
        redeliver_email(email, webhook_ids=None)
        return Response({"ErrorCode": 0, "Message": f"Successfully rescheduled failed message: {_shown_id(email)}."})


def filter_received(emails: QuerySet[ReceivedEmail], query: Mapping[str, Any]) -> QuerySet[ReceivedEmail]:
    """Filter received emails. Filters without an index search the newest MAX_SEARCHED only."""
    if query.keys() & UNINDEXED:
        newest = emails.order_by("-received_at", "-id").values("id")[: filters.MAX_SEARCHED]
        emails = emails.filter(id__in=newest)
    for name, value in query.items():
        emails = FILTERS[name](emails, value)
    return emails


def message_resource(email: ReceivedEmail) -> Resource:
    resource = ReceivedItemSerializer(email).data
    files = [
        {
            "Name": entry["filename"] or f"attachment-{number}",
            "Content": "",
            "ContentType": entry["contentType"],
            "ContentLength": entry["size"],
            "ContentID": entry["contentId"] or "",
        }
        for number, entry in enumerate(resource["attachments"], 1)
    ]
    date = resource["date"] or ""
    members = {**message_members(resource), "Date": date, "Attachments": files, "Status": _status(email)}
    return {**members, "MessageStream": STREAM}


def details_resource(email: ReceivedEmail) -> Resource:
    resource = dict(ReceivedSerializer(email).data)
    inlined = InlinedEmail(resource, b"")
    return {
        **message_resource(email),
        "Date": inlined.header_text("Date"),
        "TextBody": resource["text"],
        "HtmlBody": resource["html"],
        "StrippedTextReply": resource["replyText"] or "",
        "Headers": header_members(inlined),
        "BlockedReason": BLOCKED_REASONS.get(email.blocked_reason, "") if _is_blocked(email) else "",
    }


def _status(email: ReceivedEmail) -> str:
    if _is_blocked(email):
        return "Blocked"
    if email.status == ReceivedStatus.STORED:
        return "Queued"
    if email.is_pending:  # type: ignore[attr-defined]  # annotated
        return "Scheduled"
    return "Failed" if email.is_exhausted else "Processed"  # type: ignore[attr-defined]  # annotated


def _is_blocked(email: ReceivedEmail) -> bool:
    return email.status == ReceivedStatus.BLOCKED


def _shown_id(email: ReceivedEmail) -> str:
    return uuid_text(email.id, prefix="inb_")
