"""Email endpoints: send, list, export, detail, timeline, resend, reschedule, cancel, approve; queue statistics."""

from typing import Any, ClassVar

from django.db.models import Prefetch
from django_filters.filterset import FilterSet
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from core.api.errors import NotFound
from core.api.parser import MAX_BODY_BYTES
from core.api.transfers import FileResponse, csv_file
from core.lib.worker.failpoints import failpoint
from core.workspaces.account_status import refuse_suspended
from core.workspaces.api.authentication import workspace_of
from core.workspaces.api.scopes import HasScope
from core.workspaces.api.viewsets import WorkspaceView, WorkspaceViewSet, note_email
from emails.accept.idempotency import StoredResponse, find_response, read_key
from emails.accept.rules.emails import BatchInput, SendInput
from emails.accept.services import check_email, resend_email, send_bulk, send_email
from emails.api.attachments import describe_attachments, sent_file_response
from emails.api.inputs import RejectInput, RescheduleInput, ResendInput
from emails.api.openapi import emails_schema, queue_schema
from emails.api.pagination import EmailPagination
from emails.api.serializers import (
    AcceptedSerializer,
    BatchAcceptedSerializer,
    CancelledSerializer,
    DecidedSerializer,
    DryRunSerializer,
    EmailItemSerializer,
    EmailSerializer,
    RescheduledSerializer,
    StatsSerializer,
    TimelineSerializer,
)
from emails.approvals import approve_email, reject_email
from emails.listing.attachments import find_attachment
from emails.listing.export import export_lines, find_export
from emails.listing.filters import EmailFilters, filter_values
from emails.listing.pages import email_query
from emails.models import Attachment, Email
from emails.queue_stats import read_queue_stats
from emails.sending.scheduling import cancel_email, reschedule_email
from webhooks.services import with_webhook_status

ACCEPTING = frozenset({"send", "batch", "resend", "partial_update"})
# Created once: instantiation copies every field, and rendering keeps no state in them.
ACCEPTED, BATCH_ACCEPTED = AcceptedSerializer(), BatchAcceptedSerializer()
ATTACHMENTS_WITHOUT_DATA = Prefetch("content__attachments", queryset=Attachment.objects.defer("data"))


class CsvRenderer(JSONRenderer):
    """Accepts text/csv in content negotiation. It renders errors only, as JSON."""

    media_type = "text/csv"
    format = "csv"


class WorkspaceNotSuspended(BasePermission):
    """Refuses to accept emails from a suspended workspace."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if view.action in ACCEPTING:
            refuse_suspended(workspace_of(request))
        return True


@emails_schema
class EmailViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[Email]):
    queryset = Email.objects.all()
    filterset_class = EmailFilters
    pagination_class = EmailPagination
    # The filters of the request; core.api.filters.FilterBackend sets them.
    filterset: FilterSet
    permission_classes = (HasScope, WorkspaceNotSuspended)
    body_bytes: ClassVar = {"send": MAX_BODY_BYTES, "batch": MAX_BODY_BYTES}
    sending_only_actions = frozenset({"send", "batch"})
    sending_actions = frozenset(
        {
            "send",
            "batch",
            "resend",
            "destroy",
            "partial_update",
            "list",
            "retrieve",
            "events",
            "export",
            "attachments",
            "attachment",
        }
    )

    deciding_actions = frozenset({"approve", "reject"})
    approvals_actions = frozenset({"list", "retrieve", "events", "attachments", "attachment"})

    def get_object(self) -> Email:
        email: Email = super().get_object()
        note_email(self.request, email.id)
        return email

    def get_queryset(self) -> Any:
        emails = super().get_queryset()
        if self.action in {"attachments", "attachment"}:
            return emails.select_related("content")
        if self.action == "retrieve":
            return emails.select_related("content", "template_version").prefetch_related(
                "recipients", ATTACHMENTS_WITHOUT_DATA
            )
        # Up to 20 MB in each email, which lists and exports do not show.
        return emails.defer("template_data") if self.action in {"list", "export"} else emails

    def get_serializer_class(self) -> Any:
        return EmailItemSerializer if self.action == "list" else EmailSerializer

    @action(detail=False, renderer_classes=[CsvRenderer, JSONRenderer])
    def export(self, request: Request) -> FileResponse:
        emails = self.get_queryset()
        self.filter_queryset(emails)
        filters = filter_values(self.filterset)
        export = find_export(email_query(emails, filters, workspace_id=self.workspace.id, limits=self.limits))
        headers = {"Content-Disposition": 'attachment; filename="emails.csv"'}
        if export.is_truncated:
            headers["X-Export-Truncated"] = "true"
        lines = export_lines(emails, export.ids)
        return csv_file(request, lines, workspace_id=self.workspace.id, headers=headers)

    @action(detail=False, methods=["post"])
    def send(self, request: Request) -> Response:
        key = read_key(request, operation="send")
        stored = find_response(self.workspace, key)
        if stored is None:
            draft, is_dry_run = self.valid(SendInput)
            if is_dry_run:
                return Response(DryRunSerializer(check_email(self.workspace, draft=draft, limits=self.limits)).data)
            stored = send_email(self.workspace, draft=draft, key=key, limits=self.limits)
        note_email(request, stored.body["id"])
        return accepted_response(stored, ACCEPTED)

    @action(detail=False, methods=["post"])
    def batch(self, request: Request) -> Response:
        key = read_key(request, operation="batch")
        stored = find_response(self.workspace, key)
        if stored is None:
            draft = self.valid(BatchInput)
            stored = send_bulk(self.workspace, draft=draft, key=key, limits=self.limits)
        return accepted_response(stored, BATCH_ACCEPTED)

    @action(detail=True, methods=["post"])
    def resend(self, request: Request, pk: str) -> Response:
        email = self.get_object()
        key = read_key(request, operation="resend", about=email.id)
        stored = find_response(self.workspace, key)
        if stored is None:
            self.valid(ResendInput, may_be_empty=True)
            stored = resend_email(self.workspace, email=email, key=key, limits=self.limits)
        note_email(request, stored.body["id"])
        return accepted_response(stored, ACCEPTED)

    @action(detail=True)
    def events(self, request: Request, pk: str) -> Response:
        email = self.get_object()
        return Response(TimelineSerializer({"data": with_webhook_status(email.events.all())}).data)

    @action(detail=True)
    def attachments(self, request: Request, pk: str) -> Response:
        return Response(describe_attachments(self.get_object()))

    @action(detail=True, url_path="attachments/(?P<attachment_id>[^/]+)")
    def attachment(self, request: Request, pk: str, attachment_id: str) -> FileResponse:
        email = self.get_object()
        file = find_attachment(email, attachment_id)
        if file is None:
            raise NotFound
        return sent_file_response(request, email, file)

    @action(detail=True, methods=["post"])
    def approve(self, request: Request, pk: str) -> Response:
        email = self.get_object()
        decision = approve_email(email)
        return Response(DecidedSerializer({"email": email, "decision": decision}).data)

    @action(detail=True, methods=["post"])
    def reject(self, request: Request, pk: str) -> Response:
        email = self.get_object()
        decision = reject_email(email, reason=self.valid(RejectInput, may_be_empty=True).get("reason"))
        return Response(DecidedSerializer({"email": email, "decision": decision}).data)

    def partial_update(self, request: Request, pk: str) -> Response:
        email = self.get_object()
        scheduled_for = self.valid(RescheduleInput)["scheduledFor"]
        reschedule_email(email, scheduled_for=scheduled_for, limits=self.limits)
        return Response(RescheduledSerializer(email).data)

    def destroy(self, request: Request, pk: str) -> Response:
        email = self.get_object()
        cancel_email(email, limits=self.limits)
        return Response(CancelledSerializer({"id": email.id}).data)


@queue_schema
class QueueStatsView(WorkspaceView):
    action = "stats"

    def get(self, request: Request) -> Response:
        return Response(StatsSerializer(read_queue_stats(self.workspace)).data)


def accepted_response(response: StoredResponse, serializer: BaseSerializer[Any]) -> Response:
    failpoint("emails.before_accept_answer")
    body = serializer.to_representation(response.body)
    return Response(body, status=status.HTTP_202_ACCEPTED, headers=response.headers)
