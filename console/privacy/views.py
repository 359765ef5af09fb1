"""`/v1/erasures`: request an erasure, and read its receipt."""

from typing import Any

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from console.privacy.models import Erasure
from console.privacy.receipts import KEPT, KINDS
from console.privacy.serializers import ErasureInput, ErasureSerializer
from console.privacy.services import request_erasure
from core.api.schema import Operation, example, response
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
