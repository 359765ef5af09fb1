"""SendGrid's API: the suppressions of one reason, and the global unsubscribes."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import NotFound
from core.lib.email_addresses import normalize_address
from interfaces.compat.drafts import as_list, read_address
from interfaces.compat.errors import invalid_field
from interfaces.compat.sendgrid import requests, resources
from interfaces.compat.sendgrid.views import SendGridViewSet
from suppressions.models import Suppression
from suppressions.serializers import MAX_ADDRESSES
from suppressions.services import delete_suppressions, suppress_addresses

Reason = Suppression.Reason
# The reasons of the suppressions in each list. Global unsubscribes can be added, which is a suppression by hand.
# https://www.twilio.com/docs/sendgrid/api-reference/suppressions-suppressions
LISTS: dict[str, tuple[Reason, ...]] = {
    "bounces": (Reason.BOUNCE,),
    "spam_reports": (Reason.COMPLAINT,),
    "unsubscribes": (Reason.UNSUBSCRIBE, Reason.MANUAL),
    "blocks": (),
    "invalid_emails": (),
}


class SendGridSuppressionViewSet(SendGridViewSet[Suppression]):
    """The suppressions in one list; lists without a reason here are empty. Those of one stream are in its group."""

    queryset = Suppression.objects.filter(stream="")

    def get_queryset(self) -> QuerySet[Suppression]:
        return super().get_queryset().filter(reason__in=LISTS[self.kwargs["name"]])

    def list(self, request: Request, name: str) -> Response:
        rows = self.get_queryset()
        for lookup, time in requests.read_times(request).items():
            rows = rows.filter(**{f"created_at__{lookup}": time})
        page = rows[requests.read_slice(request)]
        return Response([resources.suppression_resource(row) for row in page])

    def clear(self, request: Request, name: str) -> Response:
        delete_suppressions(self.workspace, addresses=_addresses_to_delete(self.get_queryset(), self.body))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def retrieve(self, request: Request, name: str, address: str) -> Response:
        return Response([resources.suppression_resource(row) for row in self._matching(address)])

    def destroy(self, request: Request, name: str, address: str) -> Response:
        if not self._matching(address).exists():
            raise NotFound
        delete_suppressions(self.workspace, addresses=[address])
        return Response(status=status.HTTP_204_NO_CONTENT)

    def create_global(self, request: Request, name: str) -> Response:
        emails = as_list(self.body.get("recipient_emails"), "recipient_emails", at_most=MAX_ADDRESSES)
        addresses = [read_address(email, f"recipient_emails[{index}]") for index, email in enumerate(emails)]
        if not addresses:
            raise invalid_field("recipient_emails", "At least one address is required.", code="required")
        suppress_addresses(self.workspace, addresses=addresses, reason=Reason.MANUAL)
        return Response({"recipient_emails": addresses}, status=status.HTTP_201_CREATED)

    def retrieve_global(self, request: Request, name: str, address: str) -> Response:
        suppression = self._matching(address).first()
        return Response({"recipient_email": suppression.email} if suppression else {})

    def _matching(self, address: str) -> QuerySet[Suppression]:
        return self.get_queryset().filter(address_key=normalize_address(address))


def _addresses_to_delete(rows: QuerySet[Suppression], body: dict[str, Any]) -> list[str]:
    """Return the addresses of a list that a request names, or all of them. Raises InvalidFields."""
    keys = rows.values_list("address_key", flat=True)
    if body.get("delete_all") is True:
        addresses = [*keys[: MAX_ADDRESSES + 1]]
        if len(addresses) > MAX_ADDRESSES:
            raise invalid_field("delete_all", f"The list has more than {MAX_ADDRESSES:,} entries. Name them in emails.")
        return addresses
    emails = as_list(body.get("emails"), "emails", at_most=MAX_ADDRESSES)
    return [*keys.filter(address_key__in=[normalize_address(email) for email in emails if isinstance(email, str)])]
