"""Base views of the compatibility endpoints: keys and limits of `/v1`, errors of the dialect."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from django.conf import settings
from django.db.models import Model, Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import InvalidJson, NotFound, Problem
from core.api.parser import MAX_BODY_BYTES, StrictJSONParser, check_body_type, parse_json
from core.lib.ids import from_any_spelling, id_number
from core.workspaces.account_status import refuse_suspended
from core.workspaces.api.scopes import HasScope
from core.workspaces.api.viewsets import WorkspaceViewSet, note_email
from emails.accept.drafts import Draft
from emails.accept.idempotency import StoredResponse, find_response, read_header_key
from emails.accept.services import accept_emails
from emails.accept.suppressed import SuppressionPolicy
from interfaces.compat.chunked import is_chunked, read_chunks
from interfaces.compat.drafts import as_object
from interfaces.compat.errors import endpoint_absent

R = TypeVar("R", bound=Model)
# The largest total that a list counts, so that its cost does not grow with the table.
MAX_COUNTED = 10_000


class AnyJSONParser(StrictJSONParser):
    """The parser of `/v1`, for arrays too."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return parse_json(stream.read(MAX_BODY_BYTES + 1))


class DialectViewSet(WorkspaceViewSet[R]):
    """A viewset of one dialect.

    provider: the name of the dialect.
    render_error: DRF's exception handler.
    id_prefix: the prefix of the ids in paths.
    accepting_actions: those that accept emails, from workspaces that are not suspended.
    suppressed: the policy of the dialect for suppressed recipients.
    """

    parser_classes = (AnyJSONParser,)
    permission_classes = (HasScope,)
    filter_backends = ()
    # OPTIONS is 405: DRF would describe a serializer.
    metadata_class = None
    provider: ClassVar[str]
    render_error: ClassVar[Any]
    id_prefix: ClassVar[str] = ""
    accepting_actions: ClassVar[frozenset[str]] = frozenset()
    suppressed: ClassVar[SuppressionPolicy] = SuppressionPolicy.ACCEPT

    def get_exception_handler(self) -> Any:
        return type(self).render_error

    @property
    def operation(self) -> str:
        """The label of the latency metric: the dialect and the names of viewset and action, `postmark-email-send`."""
        name = type(self).__name__.lower().removeprefix(self.provider).removesuffix("viewset")
        return f"{self.provider}-{name}-{self.action or 'other'}".replace("_", "-")

    # The body of an absent endpoint is not read: of any type and size, it gets the same response.
    def check_body(self, request: Request) -> None:
        if self.action != "absent":
            check = check_body_type if is_chunked(request.META) else super().check_body
            check(request)

    def check_permissions(self, request: Request) -> None:
        super().check_permissions(request)
        if self.action in self.accepting_actions:
            refuse_suspended(self.workspace)

    # A chunked body is read after authentication. PostgreSQL cannot compare a text with NUL, which the parser refuses
    # in bodies.
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # Django's request object, which core.api.request_ids reads.
        request._request.operation = self.operation  # type: ignore[attr-defined]  # noqa: SLF001
        super().initial(request, *args, **kwargs)
        if self.action != "absent" and is_chunked(request.META):
            read_chunks(request, max_bytes=self.max_body_bytes)
        if any("\0" in text for text in (request.path_info, *request.query_params.dict().values())):
            raise NotFound("Not found: the URL contains a NUL character.")

    @property
    def body(self) -> dict[str, Any]:
        """The JSON object of the request."""
        return as_object(self.request.data, "body")

    @property
    def items(self) -> list[Any]:
        """The JSON array of the request. Raises InvalidJson for any other value."""
        if not isinstance(self.request.data, list):
            raise InvalidJson("The body must be a JSON array.")
        return self.request.data

    def absent(self, request: Request, **_: Any) -> Response:
        """Answer a request to an endpoint that the dialect does not have here."""
        page = f"{settings.PUBLIC_URL}/docs/migrate/{self.provider}"
        raise endpoint_absent(f"{request.method} {request.path[:200]} is not available here. See {page}.")

    # Postmark and SendGrid have no error for a method that a path does not have.
    def http_method_not_allowed(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return self.absent(request)

    def accept(
        self, read: Callable[[], Sequence[Draft | Problem]], *, all_or_nothing: bool = True, about: str = ""
    ) -> StoredResponse:
        """Accept the emails of a request, or return the response to an earlier one with its idempotency key.

        read: translates the request, unless it repeats another.
        all_or_nothing: raise the first problem instead of returning it as a result.
        about: part of the fingerprint.
        """
        key = read_header_key(self.request, operation=self.provider, about=about)
        stored = find_response(self.workspace, key) or accept_emails(
            self.workspace,
            drafts=read(),
            key=key,
            limits=self.limits,
            all_or_nothing=all_or_nothing,
            suppressed=self.suppressed,
        )
        if len(stored.body["results"]) == 1:
            note_email(self.request, stored.body["results"][0].get("id"))
        return stored

    def find(self, text: str) -> R:
        """Return the workspace's object with an id in either spelling. Raises NotFound."""
        return find_row(self.get_queryset(), pk=from_any_spelling(text, prefix=self.id_prefix))

    def find_number(self, number: str) -> R:
        """Return the workspace's object whose id has a number, among at most MAX_COUNTED objects. Raises NotFound."""
        for object_id in self.get_queryset().order_by().values_list("pk", flat=True)[:MAX_COUNTED]:
            if str(id_number(object_id, prefix=self.id_prefix)) == number:
                return self.find(object_id)
        raise NotFound


def find_row(rows: QuerySet[R], **lookup: Any) -> R:
    """Return the only row with these values, which may be malformed. Raises NotFound."""
    try:
        return rows.get(**lookup)
    except (rows.model.DoesNotExist, ValueError) as error:  # type: ignore[attr-defined]
        raise NotFound from error


def bounded_count(rows: QuerySet[R]) -> int:
    """Return the number of rows, at most MAX_COUNTED."""
    return rows.order_by()[:MAX_COUNTED].count()


def cursor_page(
    rows: QuerySet[R], *, after: R | None, before: R | None, limit: int, time: str = "created_at"
) -> tuple[list[R], bool]:
    """Return rows next to another one, newest first, and whether there are more in that direction.

    after: the rows that follow it in the list, which are older.
    before: the rows that precede it.
    time: the column by which they are ordered, together with id.
    """
    if before is not None:
        page = list(_beyond(rows, before, time=time, side="gt").order_by(time, "id")[: limit + 1])
        return page[:limit][::-1], len(page) > limit
    if after is not None:
        rows = _beyond(rows, after, time=time, side="lt")
    page = list(rows.order_by(f"-{time}", "-id")[: limit + 1])
    return page[:limit], len(page) > limit


def _beyond(rows: QuerySet[R], row: R, *, time: str, side: str) -> QuerySet[R]:
    """Return the rows on one side of another: `gt` for newer ones, `lt` for older ones."""
    value = getattr(row, time)
    return rows.filter(Q(**{f"{time}__{side}": value}) | Q(**{time: value, f"id__{side}": row.pk}))
