"""What every /v1 view is made of, and the one place where rows are scoped to the caller's workspace."""

from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from api.errors import InvalidJson
from api.parser import check_body_headers
from workspaces.authentication import workspace_of
from workspaces.models import Workspace

M = TypeVar("M", bound=Model)


class WorkspaceView(APIView):
    """A view that knows its caller's workspace."""

    # Refused before authentication: the order of checks in CONTRACT section 1.
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_body_headers(request)
        super().initial(request, *args, **kwargs)

    @property
    def workspace(self) -> Workspace:
        return workspace_of(self.request)


class WorkspaceViewSet(WorkspaceView, GenericViewSet[M]):
    """A viewset whose queryset holds the caller's rows only, so that a foreign id is not found."""

    def get_queryset(self) -> QuerySet[M]:
        return super().get_queryset().filter(workspace=self.workspace)

    def valid(self, serializer: type[BaseSerializer[Any]], **context: Any) -> Any:
        """Return the body as the serializer reads it. Raises ValidationError with all fields at once."""
        if (self.request.META.get("CONTENT_LENGTH") or "0") == "0":
            raise InvalidJson("The body is empty; send a JSON object.")
        body = serializer(data=self.request.data, context={**self.get_serializer_context(), **context})
        body.is_valid(raise_exception=True)
        return body.validated_data
