"""Resend's API: the view of a kind of object, and emails."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from api.errors import Problem
from api.parser import MAX_BODY_BYTES
from compat.drafts import read_drafts
from compat.errors import invalid_field
from compat.resend import requests, resources
from compat.resend.errors import render_error
from compat.views import AbsentEndpointMixin, AcceptingMixin, DialectViewSet, R, cursor_page, dialect_response
from emails.accept.drafts import Draft
from emails.accept.idempotency import IdempotencyKey, StoredResponse, find_response, read_header_key
from emails.accept.services import accept_emails
from emails.accept.suppressed import SuppressionPolicy
from emails.models import Attachment, Email
from emails.sending.scheduling import cancel_email, reschedule_email
from lib.ids import uuid_text

OPERATION = "resend"


class ResendViewSet(AbsentEndpointMixin, DialectViewSet[R]):
    provider = "resend"
    render_error = staticmethod(render_error)
    # The name of the kind of object.
    object_name: ClassVar[str]

    def list(self, request: Request, **_: Any) -> Response:
        anchors = {name: self._anchor(name) for name in ("after", "before")}
        rows, has_more = cursor_page(self.get_queryset(), limit=requests.read_limit(request), **anchors)
        return Response(resources.list_resource(rows, self.item, has_more=has_more))

    def item(self, row: R) -> resources.Resource:
        """Return an object as in a list."""
        raise NotImplementedError

    def reference(self, row: R, **members: Any) -> resources.Resource:
        """Return the resource that names an object: the response to most changes."""
        return {"object": self.object_name, "id": uuid_text(row.pk, prefix=self.id_prefix), **members}

    def _anchor(self, name: str) -> R | None:
        text = self.request.query_params.get(name)
        return self.find(text) if text else None


class ResendEmailViewSet(AcceptingMixin, ResendViewSet[Email]):
    queryset = Email.objects.prefetch_related("recipients")
    object_name = "email"
    sending_actions = frozenset({"send", "batch", "list", "retrieve", "update", "cancel", "attachments"})
    accepting_actions = frozenset({"send", "batch", "update"})
    body_bytes: ClassVar = {"send": MAX_BODY_BYTES, "batch": MAX_BODY_BYTES}

    def get_queryset(self) -> QuerySet[Email]:
        rows = super().get_queryset()
        return rows.defer("template_data") if self.action == "list" else rows

    def item(self, row: Email) -> resources.Resource:
        return resources.email_item(row)

    def send(self, request: Request) -> Response:
        key = read_header_key(request, operation=OPERATION)
        stored = find_response(self.workspace, key)
        if stored is None:
            drafts: list[Draft | Problem] = [requests.read_email(request.data)]
            stored = self._accept(drafts, key, all_or_nothing=True)
        return dialect_response(stored, resources.sent_id(stored))

    def batch(self, request: Request) -> Response:
        key = read_header_key(request, operation=OPERATION)
        stored = find_response(self.workspace, key)
        if stored is None:
            drafts = self._batch_drafts()
            strict = request.headers.get("x-batch-validation", "strict") != "permissive"
            stored = self._accept(drafts, key, all_or_nothing=strict)
        return dialect_response(stored, resources.sent_batch(stored))

    def _accept(
        self, drafts: list[Draft | Problem], key: IdempotencyKey | None, *, all_or_nothing: bool
    ) -> StoredResponse:
        return accept_emails(
            self.workspace,
            drafts=drafts,
            key=key,
            limits=self.limits,
            all_or_nothing=all_or_nothing,
            suppressed=SuppressionPolicy.ACCEPT,
        )

    def _batch_drafts(self) -> list[Any]:
        if not 1 <= len(self.items) <= requests.MAX_BATCH:
            raise invalid_field("emails", f"A batch must have 1 to {requests.MAX_BATCH} emails.")
        return read_drafts(requests.read_batch_item, self.items)

    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(resources.email_resource(self.find(pk)))

    def update(self, request: Request, pk: str) -> Response:
        email = self.find(pk)
        reschedule_email(email, scheduled_for=requests.read_schedule(self.body), limits=self.limits)
        return Response(self.reference(email))

    def cancel(self, request: Request, pk: str) -> Response:
        email = self.find(pk)
        cancel_email(email, limits=self.limits)
        return Response(self.reference(email))

    def attachments(self, request: Request, pk: str) -> Response:
        email = self.find(pk)
        files = Attachment.objects.filter(content=email.content_id).defer("data") if email.content_id else []
        return Response(
            resources.list_resource(files, lambda attachment: resources.attachment_resource(email, attachment))
        )
