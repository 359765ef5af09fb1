"""Base views of the /v1 API, and the only place that scopes rows to the caller's workspace."""

import time
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from core.api.errors import InvalidJson
from core.api.parser import DEFAULT_BODY_BYTES, check_body_headers
from core.api.query import DeclaredQuery, refuse_unknown_parameters
from core.lib.token_bucket import BucketState
from core.workspaces.account_status import refuse_inactive
from core.workspaces.api.authentication import key_of, workspace_of
from core.workspaces.api.throttling import owe_processor_time, refuse_excess, take_key_request
from core.workspaces.key_limits import KeyLimits, LimitedQuerySet
from core.workspaces.models import Workspace

M = TypeVar("M", bound=Model)


class KeyedView(APIView):
    """A view that requires a key. Subclasses take the rate limit token of the request in perform_authentication."""

    # Sizes of bodies by action, where they differ from the default.
    body_bytes: ClassVar[Mapping[str, int]] = {}
    # Queries by view method; describe_view sets them.
    queries: ClassVar[Mapping[str, DeclaredQuery]] = {}
    level: BucketState | None = None

    # Checked before authentication (docs/specification.md, Order of checks).
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.check_body(request)
        super().initial(request, *args, **kwargs)
        refuse_unknown_parameters(request, self)

    def check_body(self, request: Request) -> None:
        """Refuse a body by its headers."""
        check_body_headers(request, max_bytes=self.max_body_bytes)

    @property
    def max_body_bytes(self) -> int:
        return self.body_bytes.get(getattr(self, "action", None) or "", DEFAULT_BODY_BYTES)

    def perform_authentication(self, request: Request) -> None:
        super().perform_authentication(request)
        # Django's request object, which core.workspaces.audit reads.
        request._request.api_key = request.auth  # type: ignore[attr-defined]  # noqa: SLF001

    def check_throttles(self, request: Request) -> None:
        refuse_excess(self.level)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        answer = super().finalize_response(request, response, *args, **kwargs)
        for name, value in self.level.headers().items() if self.level else ():
            answer[name] = value
        # View, request and response refer to each other: a parsed body of 20 MB would wait for the garbage collector.
        request._data = request._full_data = {}  # type: ignore[attr-defined]  # noqa: SLF001
        return answer

    def valid_query(self, serializer: type[BaseSerializer[Any]]) -> Any:
        """Return the validated query parameters without empty ones; of a repeated parameter, the last value."""
        given = {name: text for name, text in self.request.query_params.dict().items() if text}
        return _shared_serializer(serializer).run_validation(given)

    def valid(self, serializer: type[BaseSerializer[Any]], *, may_be_empty: bool = False) -> Any:
        """Return the validated body.

        may_be_empty: the body may be missing.
        Raises ValidationError with the errors of all fields, and InvalidJson for a missing body.
        """
        if not may_be_empty and (self.request.META.get("CONTENT_LENGTH") or "0") == "0":
            raise InvalidJson("The body is empty; send a JSON object.")
        return _shared_serializer(serializer).run_validation(self.request.data)


class WorkspaceView(KeyedView):
    """A view with the workspace of the API key. started: the processor time of this thread after authentication."""

    started: float | None = None

    # The token is taken here, so that responses to keys with insufficient scope have rate limit headers too.
    def perform_authentication(self, request: Request) -> None:
        super().perform_authentication(request)
        self.level = take_key_request(key_of(request))
        self.started = time.thread_time()
        refuse_inactive(workspace_of(request))

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        if self.started is not None:
            owe_processor_time(workspace_of(request), time.thread_time() - self.started)
        return super().finalize_response(request, response, *args, **kwargs)

    @property
    def workspace(self) -> Workspace:
        return workspace_of(self.request)

    @property
    def limits(self) -> KeyLimits:
        return key_of(self.request).limits


class WorkspaceViewSet(WorkspaceView, GenericViewSet[M]):
    """A viewset limited to the caller's rows: those of other workspaces and outside of its limits are not found."""

    def get_queryset(self) -> QuerySet[M]:
        rows = super().get_queryset().filter(workspace=self.workspace)
        return rows.within(self.limits, workspace_id=self.workspace.id) if isinstance(rows, LimitedQuerySet) else rows


def note_email(request: Request, email_id: str | None) -> None:
    """Link the request to an email in the request log."""
    # Django's request object, which core.request_log.recording reads.
    request._request.email_id = email_id  # type: ignore[attr-defined]  # noqa: SLF001


_serializers: dict[type[BaseSerializer[Any]], BaseSerializer[Any]] = {}


def _shared_serializer(serializer: type[BaseSerializer[Any]]) -> BaseSerializer[Any]:
    """Return the shared serializer instance of an operation.

    Input serializers keep no state between validations, and creating one copies all its fields: a tenth of the
    time to accept an email.
    """
    return _serializers.get(serializer) or _serializers.setdefault(serializer, serializer())
