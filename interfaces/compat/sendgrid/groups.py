"""SendGrid's API: unsubscribe groups, which are the streams other than `main`, and their suppressions.

See docs/decisions/0180.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import NotFound
from interfaces.compat.drafts import as_list, read_address, rename_fields
from interfaces.compat.errors import invalid_field
from interfaces.compat.sendgrid.resources import Resource
from interfaces.compat.sendgrid.views import SendGridViewSet
from interfaces.compat.streams import change_stream, create_named_stream
from interfaces.compat.views import MAX_COUNTED, bounded_count
from streams.models import MAIN, Stream
from streams.services import archive_stream
from suppressions.models import Suppression, suppression_key
from suppressions.serializers import MAX_ADDRESSES
from suppressions.services import delete_suppressions, suppress_addresses

# Digits of Stream.number.
MAX_DIGITS = 5
FIELDS = {"name": "name", "description": "description"}
# The preference page shows default groups unless an email names others. A new group is always shown, so that emails can
# name it in groups_to_display. https://www.twilio.com/docs/sendgrid/for-developers/sending-email/suppressions
CHANGEABLE = {**FIELDS, "is_default": "public"}
# In a query for several groups.
MAX_QUERIED = 25


def find_group(groups: QuerySet[Stream], number: str) -> Stream:
    """Return the group with a number. Raises NotFound."""
    group = groups.filter(number=int(number)).first() if _is_number(number) else None
    if group is None:
        raise NotFound
    return group


class SendGridGroupViewSet(SendGridViewSet[Stream]):
    queryset = Stream.objects.filter(archived_at=None).exclude(slug=MAIN)
    sending_actions = frozenset({"list", "retrieve"})

    def list(self, request: Request) -> Response:
        groups = self.get_queryset()
        numbers = request.query_params.getlist("id")[:MAX_QUERIED]
        if numbers:
            groups = groups.filter(number__in=[int(text) for text in numbers if _is_number(text)])
        return Response([counted_group(group) for group in groups])

    def create(self, request: Request) -> Response:
        group = create_named_stream(self.workspace, _read(self.body))
        return Response(group_resource(group), status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, number: str) -> Response:
        return Response(counted_group(find_group(self.get_queryset(), number)))

    def partial_update(self, request: Request, number: str) -> Response:
        fields = _read(self.body, CHANGEABLE)
        group = change_stream(self.workspace, find_group(self.get_queryset(), number), fields)
        return Response(group_resource(group), status=status.HTTP_201_CREATED)

    def destroy(self, request: Request, number: str) -> Response:
        archive_stream(self.workspace, find_group(self.get_queryset(), number).slug)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SendGridGroupSuppressionViewSet(SendGridViewSet[Suppression]):
    """The suppressions of groups."""

    queryset = Suppression.objects.exclude(stream="")

    def list(self, request: Request, number: str) -> Response:
        rows = self.get_queryset().filter(stream=self._group(number).slug)
        return Response([*rows.values_list("email", flat=True)[:MAX_COUNTED]])

    def create(self, request: Request, number: str) -> Response:
        group, addresses = self._group(number), self._addresses()
        suppress_addresses(self.workspace, addresses=addresses, reason=Suppression.Reason.MANUAL, stream=group.slug)
        return Response({"recipient_emails": addresses}, status=status.HTTP_201_CREATED)

    def search(self, request: Request, number: str) -> Response:
        return Response([row.email for row in self._of(self._group(number), self._addresses())])

    def destroy(self, request: Request, number: str, address: str) -> Response:
        group = self._group(number)
        if not self._of(group, [address]).exists():
            raise NotFound
        delete_suppressions(self.workspace, addresses=[address], stream=group.slug)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def list_all(self, request: Request) -> Response:
        groups = {group.slug: group for group in self._groups()}
        rows = self.get_queryset().filter(stream__in=[*groups])[:MAX_COUNTED]
        return Response([suppression_resource(row, groups[row.stream]) for row in rows])

    def retrieve(self, request: Request, address: str) -> Response:
        groups = list(self._groups())
        keys = [suppression_key(address, stream=group.slug) for group in groups]
        found = {*self.get_queryset().filter(address_key__in=keys).values_list("stream", flat=True)}
        return Response(
            {"suppressions": [{**group_resource(group), "suppressed": group.slug in found} for group in groups]}
        )

    def _groups(self) -> QuerySet[Stream]:
        return SendGridGroupViewSet.queryset.filter(workspace=self.workspace)

    def _group(self, number: str) -> Stream:
        return find_group(self._groups(), number)

    def _of(self, group: Stream, addresses: Sequence[str]) -> QuerySet[Suppression]:
        keys = [suppression_key(address, stream=group.slug) for address in addresses]
        return self.get_queryset().filter(address_key__in=keys)

    def _addresses(self) -> Sequence[str]:
        emails = as_list(self.body.get("recipient_emails"), "recipient_emails", at_most=MAX_ADDRESSES)
        if not emails:
            raise invalid_field("recipient_emails", "At least one address is required.", code="required")
        return [read_address(email, f"recipient_emails[{index}]") for index, email in enumerate(emails)]


def group_resource(group: Stream) -> Resource:
    return {"id": group.number, "name": group.name, "description": group.description, "is_default": group.public}


def counted_group(group: Stream) -> Resource:
    """Return a group with the number of its suppressions, at most MAX_COUNTED."""
    rows = Suppression.objects.filter(workspace=group.workspace_id, stream=group.slug)
    return {**group_resource(group), "last_email_sent_at": None, "unsubscribes": bounded_count(rows)}


def suppression_resource(suppression: Suppression, group: Stream) -> Resource:
    return {
        "email": suppression.email,
        "group_id": group.number,
        "group_name": group.name,
        "created_at": int(suppression.created_at.timestamp()),
    }


def _read(body: dict[str, Any], names: Mapping[str, str] = FIELDS) -> dict[str, Any]:
    """Return the fields of `/v1` that a request sets. Raises InvalidFields."""
    is_default = body.get("is_default")
    if is_default is not None and not isinstance(is_default, bool):
        raise invalid_field("is_default", "This must be true or false.", code="invalid_type")
    return rename_fields(body, names)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
