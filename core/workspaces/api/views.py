"""View of `GET /v1/me`: workspace and API key of the request, and the remaining quota."""

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from core.workspaces.api.schema import me_schema
from core.workspaces.api.serializers import MeSerializer
from core.workspaces.api.viewsets import WorkspaceView
from core.workspaces.quota import read_quota


@me_schema
class MeView(WorkspaceView):
    action = "me"
    sending_actions = sending_only_actions = approvals_actions = frozenset({"me"})

    def get(self, request: Request) -> Response:
        answer = {
            "workspace": self.workspace,
            "key": request.auth,
            "quota": read_quota(self.workspace),
            "recipients": str(settings.RECIPIENTS),
        }
        return Response(MeSerializer(answer).data)
