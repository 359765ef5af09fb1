"""What every /v1 view is made of, and the one place where rows are scoped to the caller's workspace."""

from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from api.errors import InvalidJson
from api.parser import check_body_headers
from lib.token_bucket import Level
from workspaces.account_status import refuse_unproven
from workspaces.api.authentication import workspace_of
from workspaces.api.throttling import WorkspaceThrottle, take_request
from workspaces.models import Workspace

M = TypeVar("M", bound=Model)


class WorkspaceView(APIView):
    """A view that knows its caller's workspace."""

    throttle_classes = (WorkspaceThrottle,)
    level: Level | None = None

    # Refused before authentication: the order of checks in CONTRACT section 1.
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_body_headers(request)
        super().initial(request, *args, **kwargs)

    # The token is taken here, so that an answer to a key of too small a scope tells the limit, too.
    def perform_authentication(self, request: Request) -> None:
        super().perform_authentication(request)
        workspace = workspace_of(request)
        # Django's own request, which workspaces.audit remembers.
        request._request.api_key = request.auth  # type: ignore[attr-defined]  # noqa: SLF001
        self.level = take_request(workspace)
        refuse_unproven(workspace)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        answer = super().finalize_response(request, response, *args, **kwargs)
        for name, value in self.level.headers().items() if self.level else ():
            answer[name] = value
        return answer

    @property
    def workspace(self) -> Workspace:
        return workspace_of(self.request)

    def valid_query(self, serializer: type[BaseSerializer[Any]]) -> Any:
        """Return the query parameters as the serializer reads them; of one given twice, the last."""
        return _reader(serializer, partial=False).run_validation(self.request.query_params.dict())


class WorkspaceViewSet(WorkspaceView, GenericViewSet[M]):
    """A viewset whose queryset holds the caller's rows only, so that a foreign id is not found."""

    def get_queryset(self) -> QuerySet[M]:
        return super().get_queryset().filter(workspace=self.workspace)

    def valid(self, serializer: type[BaseSerializer[Any]], *, partial: bool = False, may_be_empty: bool = False) -> Any:
        """Return the body as the serializer reads it.

        partial: fields may be left out. may_be_empty: so may the body.
        Raises ValidationError with all fields at once, InvalidJson for a body that is missing.
        """
        if not may_be_empty and (self.request.META.get("CONTENT_LENGTH") or "0") == "0":
            raise InvalidJson("The body is empty; send a JSON object.")
        return _reader(serializer, partial=partial).run_validation(self.request.data)


_readers: dict[tuple[str, bool], BaseSerializer[Any]] = {}


def _reader(serializer: type[BaseSerializer[Any]], *, partial: bool) -> BaseSerializer[Any]:
    """Return the one instance that reads for an operation.

    Our inputs keep nothing between two readings, and making one copies all its fields: a tenth of what
    accepting an email takes.
    """
    key = f"{serializer.__module__}.{serializer.__qualname__}", partial
    return _readers.get(key) or _readers.setdefault(key, serializer(partial=partial))
