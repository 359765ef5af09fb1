"""Resend's API: the view of a kind of object, and emails."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import NotFound
from core.api.parser import MAX_BODY_BYTES
from core.lib.ids import from_any_spelling, uuid_text
from core.workspaces.api.viewsets import WorkspaceViewSet
from emails.listing.attachments import find_attachment, list_attachments
from emails.models import Email
from emails.sending.scheduling import cancel_email, reschedule_email
from interfaces.compat.drafts import read_drafts
from interfaces.compat.errors import invalid_field
from interfaces.compat.resend import requests, resources
from interfaces.compat.resend.attachment_pages import attachment_page
from interfaces.compat.resend.errors import render_error
from interfaces.compat.resend.template_requests import with_template_defaults
from interfaces.compat.resend.topic_ids import TopicReader, email_topic
from interfaces.compat.views import DialectViewSet, R, cursor_page


class ResendViewSet(DialectViewSet[R]):
    """A kind of object.

    object_name: its name in responses.
    item: returns an object as in a list.
    time_column: the order of a list.
    delete_object: deletes one.
    """

    provider = "resend"
    render_error = staticmethod(render_error)
    object_name: ClassVar[str]
    time_column: ClassVar[str] = "created_at"
    item: "ClassVar[staticmethod[[Any], resources.Resource]]"
    delete_object: "ClassVar[staticmethod[[Any], object]]"
    # https://resend.com/docs/api-reference/errors
    http_method_not_allowed = WorkspaceViewSet.http_method_not_allowed

    def list(self, request: Request, **_: Any) -> Response:
        anchors = {name: self._anchor(name) for name in ("after", "before")}
        limit = requests.read_limit(request)
        rows, has_more = cursor_page(self.get_queryset(), limit=limit, time=self.time_column, **anchors)
        return Response(resources.list_resource(rows, self.item, has_more=has_more))

    def destroy(self, request: Request, pk: str) -> Response:
        row = self.find(pk)
        answer = self.reference(row, deleted=True)
        self.delete_object(row)
        return Response(answer)

    def reference(self, row: R, **members: Any) -> resources.Resource:
        """Return the resource that names an object: the response to most changes."""
        return {"object": self.object_name, "id": uuid_text(row.pk, prefix=self.id_prefix), **members}

    def _anchor(self, name: str) -> R | None:
        text = self.request.query_params.get(name)
        return self.find(text) if text else None


class ResendEmailViewSet(ResendViewSet[Email]):
    queryset = Email.objects.prefetch_related("recipients")
    object_name, item = "email", staticmethod(resources.email_item)
    sending_only_actions = frozenset({"send", "batch"})
    sending_actions = frozenset({"send", "batch", "list", "retrieve", "update", "cancel", "attachments", "attachment"})
    accepting_actions = frozenset({"send", "batch", "update"})
    body_bytes: ClassVar = {"send": MAX_BODY_BYTES, "batch": MAX_BODY_BYTES}

    def get_queryset(self) -> QuerySet[Email]:
        rows = super().get_queryset()
        return rows.defer("template_data") if self.action == "list" else rows

    def send(self, request: Request) -> Response:
        read = TopicReader(self.workspace).reader(requests.read_email)
        stored = self.accept(lambda: [read(one) for one in with_template_defaults(self.workspace, [request.data])])
        return Response(resources.sent_id(stored), headers=stored.headers)

    def batch(self, request: Request) -> Response:
        is_permissive = request.headers.get("x-batch-validation") == "permissive"
        stored = self.accept(self._batch_drafts, all_or_nothing=not is_permissive)
        return Response(resources.sent_batch(stored), headers=stored.headers)

    def _batch_drafts(self) -> list[Any]:
        if not 1 <= len(self.items) <= requests.MAX_BATCH:
            raise invalid_field("emails", f"A batch must have 1 to {requests.MAX_BATCH} emails.")
        items = with_template_defaults(self.workspace, self.items)
        return read_drafts(TopicReader(self.workspace).reader(requests.read_batch_item), items)

    def retrieve(self, request: Request, pk: str) -> Response:
        email = self.find(pk)
        return Response({**resources.email_resource(email), "topic_id": email_topic(email)})

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
        entries = [resources.attachment_resource(email, file) for file in list_attachments(email)]
        page, has_more = attachment_page(request, entries)
        return Response(resources.list_resource(page, lambda entry: entry, has_more=has_more))

    def attachment(self, request: Request, pk: str, attachment: str) -> Response:
        email = self.find(pk)
        file = find_attachment(email, from_any_spelling(attachment, prefix="att_"))
        if file is None:
            raise NotFound
        return Response({"object": "attachment", **resources.attachment_resource(email, file)})
