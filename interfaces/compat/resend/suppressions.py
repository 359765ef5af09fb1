"""Resend's API: suppressions."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.lib.datetimes import format_datetime
from core.lib.email_addresses import normalize_address
from core.lib.ids import from_any_spelling, is_id, uuid_text
from interfaces.compat.drafts import as_list, read_choice
from interfaces.compat.resend.resources import Resource
from interfaces.compat.resend.views import ResendViewSet
from interfaces.compat.views import find_row
from suppressions.models import Suppression
from suppressions.serializers import SuppressionInput, SuppressionRequest
from suppressions.services import delete_suppression, delete_suppressions, suppress_addresses

Reason = Suppression.Reason
# The reasons of each origin; Resend has no other origins.
# https://resend.com/docs/api-reference/suppressions/list-suppressions
ORIGINS = {
    "bounce": (Reason.BOUNCE,),
    "complaint": (Reason.COMPLAINT,),
    "manual": (Reason.MANUAL, Reason.UNSUBSCRIBE),
}
ORIGIN_BY_REASON = {reason: origin for origin, reasons in ORIGINS.items() for reason in reasons}
MAX_BATCH = 100


def suppression_item(suppression: Suppression) -> Resource:
    """Return a suppression in a list."""
    return {
        "id": uuid_text(suppression.id, prefix="sup_"),
        "email": suppression.email,
        "origin": ORIGIN_BY_REASON[Reason(suppression.reason)],
        "source_id": None,
        "created_at": format_datetime(suppression.created_at),
    }


class ResendSuppressionViewSet(ResendViewSet[Suppression]):
    # Those of one stream do not stop the emails of the others.
    queryset = Suppression.objects.filter(stream="")
    object_name, id_prefix = "suppression", "sup_"
    item, delete_object = staticmethod(suppression_item), staticmethod(delete_suppression)

    def get_queryset(self) -> QuerySet[Suppression]:
        rows = super().get_queryset()
        if self.action != "list":
            return rows
        reasons = read_choice(self.request.query_params.get("origin") or None, ORIGINS, field="origin")
        return rows.filter(reason__in=reasons) if reasons else rows

    def find(self, text: str) -> Suppression:
        """Return the suppression with an id in either spelling, or of an address. Raises NotFound."""
        if "@" in text:
            return find_row(self.get_queryset(), address_key=normalize_address(text))
        return super().find(text)

    def create(self, request: Request) -> Response:
        (suppression,) = self._suppress({"email": self.body.get("email")})
        return Response(self.reference(suppression), status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, pk: str) -> Response:
        return Response({"object": self.object_name, **suppression_item(self.find(pk))})

    def add_batch(self, request: Request) -> Response:
        rows = self._suppress({"emails": self._entries("emails")})
        return Response({"data": [self.reference(row) for row in rows]}, status=status.HTTP_201_CREATED)

    def remove_batch(self, request: Request) -> Response:
        rows = list(self._named())
        delete_suppressions(self.workspace, addresses=[row.email for row in rows])
        return Response({"data": [self.reference(row, deleted=True) for row in rows]})

    def _suppress(self, native: dict[str, Any]) -> list[Suppression]:
        accepted: SuppressionRequest = SuppressionInput().run_validation(native)
        return [
            row for row, _ in suppress_addresses(self.workspace, addresses=accepted.addresses, reason=Reason.MANUAL)
        ]

    def _named(self) -> QuerySet[Suppression]:
        """Return the suppressions that the request names by id or by address."""
        if "ids" in self.body:
            return self.get_queryset().filter(id__in=_ids(self._entries("ids")))
        accepted: SuppressionRequest = SuppressionInput().run_validation({"emails": self._entries("emails")})
        return self.get_queryset().filter(address_key__in=map(normalize_address, accepted.addresses))

    def _entries(self, name: str) -> list[Any]:
        return as_list(self.body.get(name), name, at_most=MAX_BATCH)


def _ids(entries: Sequence[Any]) -> list[str]:
    """Return ids in their usual spelling, without those that are malformed."""
    ids = [from_any_spelling(text, prefix="sup_") for text in entries if isinstance(text, str)]
    return [text for text in ids if is_id(text, prefix="sup_")]
