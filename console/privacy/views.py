"""`/v1/erasures` and `/v1/subject-exports`: erase and export people, and read receipts and files."""

from typing import Any, ClassVar

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from console.privacy.downloads import export_response
from console.privacy.errors import ExportNotReady
from console.privacy.exports import open_export, request_export
from console.privacy.models import Erasure, SubjectExport
from console.privacy.receipts import EXPORTED, KEPT, KINDS
from console.privacy.serializers import (
    ErasureInput,
    ErasureSerializer,
    SubjectExportInput,
    SubjectExportSerializer,
)
from console.privacy.services import request_erasure
from core.api.schema import Operation, example, response
from core.api.transfers import FileResponse
from core.workspaces.api.schema import keyed_view
from core.workspaces.api.viewsets import WorkspaceViewSet
from core.workspaces.errors import PlanLimitReached

ERASURE: dict[str, Any] = example(
    ErasureSerializer,
    id="era_0Uf7p4Lm9XsRdT2bVhYkNc",
    status="completed",
    email="",
    deleted={**dict.fromkeys(KINDS, 0), "emails": 12, "events": 40, "suppressions": 1},
    kept=[{"kind": kind, "reason": reason} for kind, reason in KEPT.items()],
    completedAt="2026-11-20T09:13:02.118Z",
    backupsUntil="2026-12-04T09:13:02.118Z",
)
PROCESSING = {
    **ERASURE,
    "status": "processing",
    "email": "ada@example.com",
    "deleted": dict.fromkeys(KINDS, 0),
    "completedAt": None,
    "backupsUntil": None,
}

EXPORT: dict[str, Any] = example(
    SubjectExportSerializer,
    id="sxp_0Uf7q1Ts3KdWmP8cXvGzRb",
    status="completed",
    email="ada@example.com",
    records={**dict.fromkeys(EXPORTED, 0), "emails": 12, "events": 40, "suppressions": 1},
    messagesLeftOut=0,
    downloadUrl="https://mail.demo.example/v1/subject-exports/sxp_0Uf7q1Ts3KdWmP8cXvGzRb/download",
    completedAt="2026-11-20T09:12:48.902Z",
    expiresAt="2026-11-27T09:12:48.902Z",
)
EXPORTING = {
    **EXPORT,
    "status": "processing",
    "records": dict.fromkeys(EXPORTED, 0),
    "downloadUrl": None,
    "completedAt": None,
    "expiresAt": None,
}
ARCHIVE = {"type": "string", "format": "binary"}


@keyed_view()
class ErasureViewSet(WorkspaceViewSet[Erasure]):
    queryset = Erasure.objects.all()
    serializer_class = ErasureSerializer

    @Operation(
        "createErasure",
        "Erase a person",
        "Erases the data of an address in the workspace: sent and received emails to, from and about it, with their "
        "events, deliveries of webhooks, template data and log entries. A suppression of the address stays as a keyed "
        "hash, unless `keepSuppression` is false: without it, the next import would mail the person again. It takes "
        "seconds to minutes; emails that are on their way are erased when they have an outcome.",
        response(ErasureSerializer, "The erasure is accepted.", PROCESSING, status=202),
        problems=[PlanLimitReached],
        body=ErasureInput,
        bodies={"A person": {"email": "ada@example.com"}},
    )
    def create(self, request: Request) -> Response:
        values = self.valid(ErasureInput)
        erasure = request_erasure(
            self.workspace, email=values["email"].spec, keep_suppression=values.get("keep_suppression", True)
        )
        return Response(ErasureSerializer(erasure).data, status=status.HTTP_202_ACCEPTED)

    @Operation(
        "getErasure",
        "Get an erasure",
        "Returns the receipt of an erasure: what was erased, what stays and why, and when backups no longer have it.",
        response(ErasureSerializer, "The erasure.", ERASURE),
    )
    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(ErasureSerializer(self.get_object()).data)


@keyed_view()
class SubjectExportViewSet(WorkspaceViewSet[SubjectExport]):
    queryset = SubjectExport.objects.all()
    serializer_class = SubjectExportSerializer
    full_access_actions: ClassVar = frozenset({"download"})

    @Operation(
        "createSubjectExport",
        "Export a person",
        "Makes a file of the data of an address in the workspace: a zip with JSON, and the messages that the person "
        "received or sent. It is kept for seven days. It takes seconds to minutes.",
        response(SubjectExportSerializer, "The export is accepted.", EXPORTING, status=202),
        problems=[PlanLimitReached],
        body=SubjectExportInput,
        bodies={"A person": {"email": "ada@example.com"}},
    )
    def create(self, request: Request) -> Response:
        export = request_export(self.workspace, email=self.valid(SubjectExportInput)["email"].spec)
        return Response(SubjectExportSerializer(export).data, status=status.HTTP_202_ACCEPTED)

    @Operation(
        "getSubjectExport",
        "Get an export of a person",
        "Returns the state of an export, what it has, and where its file can be downloaded.",
        response(SubjectExportSerializer, "The export.", EXPORT),
    )
    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(SubjectExportSerializer(self.get_object()).data)

    @Operation(
        "downloadSubjectExport",
        "Download an export of a person",
        "Returns the file of a completed export, until it expires.",
        response(ARCHIVE, "The file.", "PK", media_type="application/octet-stream"),
        problems=[ExportNotReady],
    )
    @action(detail=True)
    def download(self, request: Request, pk: str) -> FileResponse:
        export = self.get_object()
        if export.completed_at is None:
            raise ExportNotReady
        if not open_export(export):
            raise NotFound
        return export_response(request, export)
