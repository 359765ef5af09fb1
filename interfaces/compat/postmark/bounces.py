"""Postmark's API: bounces. A bounce is an event of the timeline with the number that its webhook has."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import ClassVar

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.bounces import read_causes
from core.api.errors import NotFound
from core.lib.model_fields import IdNumber
from core.workspaces.models import Workspace
from emails.listing.counts import count_by_status
from emails.models import Email
from emails.states import EmailStatus
from events.kinds import EventKind
from events.models import Event
from interfaces.compat.errors import invalid_field
from interfaces.compat.postmark import filters, requests, resources
from interfaces.compat.postmark.errors import BOUNCE_QUERY
from interfaces.compat.postmark.views import PostmarkViewSet
from interfaces.compat.postmark.webhook_format import event_bounce_type
from interfaces.compat.views import bounded_count
from streams.models import MAIN
from suppressions.models import Suppression
from suppressions.services import Sending, delete_suppressions, find_suppressed, find_suppressed_sendings

# The events that a webhook in Postmark's format describes as a bounce or a spam complaint.
# https://postmarkapp.com/developer/webhooks/bounce-webhook
BOUNCE_EVENTS = (EventKind.BOUNCED, EventKind.FAILED, EventKind.DEFERRED, EventKind.COMPLAINED)
EPOCH = datetime.fromtimestamp(0, UTC)
# https://postmarkapp.com/developer/api/bounce-api#delivery-stats
TYPE_LABELS = {
    "HardBounce": "Hard bounce",
    "SoftBounce": "Soft bounce",
    "Transient": "Message delayed",
    "Blocked": "ISP block",
    "SpamNotification": "Spam notification",
    "VirusNotification": "Virus notification",
    "DnsError": "DNS error",
    "BadEmailAddress": "Invalid email address",
    "ManuallyDeactivated": "Manually deactivated",
}
# The newest bounced emails, whose tags are listed.
MAX_TAGGED = 1000


class PostmarkBounceViewSet(PostmarkViewSet[Email]):
    """Bounces. The list has those of emails that no recipient received."""

    queryset = Email.objects.all()
    query_errors: ClassVar = {"list": BOUNCE_QUERY}

    def list(self, request: Request) -> Response:
        page, query = requests.read_slice(request), filters.read_filters(request, known=filters.BOUNCES)
        emails = filters.filter_emails(self._bounced(), query, known=filters.BOUNCES)
        ids = list(emails.values_list("id", flat=True)[page])
        events = self._events().filter(kind=EventKind.BOUNCED, email__in=ids)
        total = bounded_count(emails) if query else self._count()
        return Response({"TotalCount": total, "Bounces": _resources(self.workspace, events.order_by("-number"))})

    def retrieve(self, request: Request, number: str) -> Response:
        return Response(self._resource(self._find(number)))

    def dump(self, request: Request, number: str) -> Response:
        # The reply of the mail host is stored, the source of the message is not.
        return Response({"Body": self._find(number).payload.get("message") or ""})

    def activate(self, request: Request, number: str) -> Response:
        event = self._find(number)
        if event.kind == EventKind.COMPLAINED:
            raise invalid_field("ID", "A recipient that complained cannot be activated.")
        address, stream = event.payload["to"], event.email.stream if event.email else MAIN
        for found in find_suppressed(self.workspace.id, [address], stream=stream).values():
            delete_suppressions(self.workspace, addresses=[address], stream=found.stream)
        return Response({"Message": "OK", "Bounce": self._resource(event)})

    def tags(self, request: Request) -> Response:
        newest = self._bounced().values_list("tags", flat=True)[:MAX_TAGGED]
        return Response(sorted({tags[0] for tags in newest if tags}))

    def delivery_stats(self, request: Request) -> Response:
        inactive = bounded_count(Suppression.objects.filter(workspace=self.workspace))
        return Response(
            {
                "InactiveMails": inactive,
                "Bounces": [{"Name": "All", "Count": self._count()}, *_count_by_type(self.workspace)],
            }
        )

    def _bounced(self) -> QuerySet[Email]:
        return self.get_queryset().filter(status=EmailStatus.BOUNCED)

    def _count(self) -> int:
        return count_by_status(self.workspace, statuses=[EmailStatus.BOUNCED])

    def _events(self) -> QuerySet[Event]:
        return Event.objects.select_related("email").defer("email__template_data", "email__metadata")

    def _find(self, number: str) -> Event:
        """Return the workspace's bounce with a number. Raises NotFound."""
        numbered = self._events().annotate(id_number=IdNumber("id"))
        value = int(number) if number.isascii() and number.isdigit() and len(number) <= len(str(1 << 53)) else -1
        bounce = numbered.filter(id_number=value, kind__in=BOUNCE_EVENTS, email__in=self.get_queryset()).first()
        if bounce is None or "to" not in bounce.payload:
            raise NotFound
        return bounce

    def _resource(self, event: Event) -> resources.Resource:
        (resource,) = _resources(self.workspace, [event])
        return resource


def _resources(workspace: Workspace, events: Iterable[Event]) -> list[resources.Resource]:
    bounces = [(event, _sending(workspace, event)) for event in events]
    suppressed = find_suppressed_sendings({sending for _, sending in bounces})
    return [resources.bounce_resource(event, is_suppressed=sending in suppressed) for event, sending in bounces]


def _sending(workspace: Workspace, event: Event) -> Sending:
    return workspace.id, event.payload.get("to", ""), event.email.stream if event.email else MAIN


def _count_by_type(workspace: Workspace) -> list[resources.Resource]:
    """Return the recipients of the newest bounces by type, most frequent first."""
    causes = read_causes(workspace, event=EventKind.BOUNCED, start=EPOCH, end=timezone.now())
    counts: Counter[str] = Counter()
    for cause in causes.reasons:
        counts[event_bounce_type(EventKind.BOUNCED, cause.reason)[0]] += cause.recipients
    return [{"Type": type_, "Name": TYPE_LABELS[type_], "Count": count} for type_, count in counts.most_common()]
