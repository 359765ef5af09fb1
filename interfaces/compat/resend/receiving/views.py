"""Resend's API: received emails and their attachments."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import NotFound
from core.lib.ids import from_any_spelling
from core.workspaces.api.authentication import key_of
from interfaces.compat.drafts import read_choice
from interfaces.compat.resend import resources
from interfaces.compat.resend.attachment_pages import attachment_page
from interfaces.compat.resend.receiving.resources import Received, attachment_resource, received_item, received_resource
from interfaces.compat.resend.views import ResendViewSet
from receiving.models import ReceivedEmail
from receiving.rendering import ReceivedItemSerializer

# https://resend.com/docs/api-reference/emails/retrieve-received-email
HTML_FORMATS = {"cid": False, "data_uri": True}


class ResendReceivedViewSet(ResendViewSet[ReceivedEmail]):
    queryset = ReceivedEmail.objects.all()
    object_name, id_prefix, time_column = "email", "inb_", "received_at"
    item = staticmethod(received_item)
    sending_actions = frozenset({"list", "retrieve", "attachments", "attachment"})

    def get_queryset(self) -> QuerySet[ReceivedEmail]:
        emails: Any = super().get_queryset()
        emails = emails.for_scope(key_of(self.request).scope, self.limits)
        rows: QuerySet[ReceivedEmail] = (
            emails.select_related("message") if self.action == "retrieve" else emails.without_content()
        )
        return rows

    def retrieve(self, request: Request, pk: str) -> Response:
        given = request.query_params.get("html_format") or None
        has_images = read_choice(given, HTML_FORMATS, field="html_format")
        return Response(received_resource(self.find(pk), has_images=has_images is not False))

    def attachments(self, request: Request, pk: str) -> Response:
        entries = [attachment_resource(entry) for entry in self._attachments(pk)]
        page, has_more = attachment_page(request, entries)
        return Response(resources.list_resource(page, lambda entry: entry, has_more=has_more))

    def attachment(self, request: Request, pk: str, attachment: str) -> Response:
        wanted = from_any_spelling(attachment, prefix="att_")
        for entry in self._attachments(pk):
            if entry["id"] == wanted:
                return Response({"object": "attachment", **attachment_resource(entry)})
        raise NotFound

    def _attachments(self, pk: str) -> Sequence[Received]:
        found: Sequence[Received] = ReceivedItemSerializer(self.find(pk)).data["attachments"]
        return found
