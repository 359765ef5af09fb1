"""OpenAPI descriptions: one `Operation(…)` per view method. The classes of errors describe themselves.

    @keyed_view(retrieve=Operation("getAlert", "Get an alert", "…", response(AlertSerializer, "The alert.", ALERT)))
    class AlertViewSet(RetrieveModelMixin, WorkspaceViewSet[Alert]):
        @Operation("createAlert", "Create an alert", "…", response(AlertSerializer, "The alert was created.", ALERT))
        def create(self, request: Request) -> Response:

Requests do not use these descriptions; core.api.openapi builds the document from them.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeVar

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.views import APIView

from core.api import errors
from core.api.errors import Problem
from core.api.pagination import MAX_LIMIT, PagePagination
from core.api.query import DeclaredQuery

Schema = dict[str, Any]
V = TypeVar("V", bound=type[APIView])
F = TypeVar("F", bound=Callable[..., Any])
ID = "[0-9A-Za-z]{22}"

# Extensions that core.api.openapi reads and removes from the document.
PROBLEMS = "x-problems"
HEADERS = "x-headers"
POSITION = "x-position"
BODY_MAY_BE_EMPTY = "x-body-may-be-empty"

PAGE_NUMBER: Schema = {"type": "integer", "minimum": 1, "maximum": 999_999_999}
EXAMPLE_TIME = "2026-11-20T09:12:31.482Z"

COMMON_PROBLEMS = (errors.NotAcceptable, errors.InternalError, errors.ServiceUnavailable, errors.Overloaded)
# The document lists operations in the order of their descriptions.
_positions = itertools.count()

# The HTTP methods of view methods that are not extra actions, and those among them with an id in the path.
HTTP_METHODS = {"list": "get", "retrieve": "get", "create": "post", "partial_update": "patch", "destroy": "delete"}
DETAIL_METHODS = frozenset({"retrieve", "partial_update", "destroy"})
BODY_PROBLEMS = (errors.InvalidJson, errors.LengthRequired, errors.PayloadTooLarge, errors.UnsupportedMediaType)


@dataclass(frozen=True)
class ResponseDescription:
    """A successful response.

    shape: a serializer or a schema.
    examples: values by title.
    headers: the names of headers.
    """

    shape: Any
    description: str
    status: int
    examples: Mapping[str, Any]
    headers: tuple[str, ...] = ()
    media_type: str = "application/json"

    @property
    def openapi(self) -> OpenApiResponse:
        examples = [OpenApiExample(title, value) for title, value in self.examples.items()]
        return OpenApiResponse(self.shape, self.description, examples)


def response(shape: Any, description: str, example: Any = None, *, status: int = 200, **options: Any) -> Any:
    """Describe a successful response. options: examples, in place of one example; headers; media_type."""
    examples = options.pop("examples", None) or {description.rstrip("."): example}
    return ResponseDescription(shape, description, status, examples, **options)


def example(serializer: type[serializers.Serializer[Any]], **values: Any) -> dict[str, Any]:
    """Return an example of an object: values by field, and otherwise defaults, null, and a fixed time.

    Raises LookupError for a value without a field, and for a field that needs a value.
    """
    fields: dict[str, Any] = dict(serializer().fields)
    if unknown := values.keys() - fields.keys():
        raise LookupError(f"{serializer.__name__} has no field {', '.join(sorted(unknown))}")
    shown = [name for name in fields if name in values or name not in getattr(serializer, "optional_fields", ())]
    return {name: values[name] if name in values else _usual_value(serializer, fields[name]) for name in shown}


def _usual_value(serializer: Any, field: Any) -> Any:
    columns = serializer.Meta.model._meta.fields if hasattr(serializer, "Meta") else ()  # noqa: SLF001 - a public API of Django
    defaults = {column.name: column.get_default() for column in columns if column.has_default()}
    value = defaults.get(field.source, field.default)
    if value is not serializers.empty:
        return value.value if isinstance(value, Enum) else value
    if field.allow_null:
        return None
    if isinstance(field, serializers.DateTimeField):
        return EXAMPLE_TIME
    raise LookupError(f"An example of {serializer.__name__} needs a value of {field.field_name}")


@dataclass(frozen=True)
class Operation:
    """The description of a view method, which it decorates.

    bodies: examples of the body by title.
    responses: one or several. The response of a list is described by one of its items.
    problems: those that the view does not imply.
    parameters: serializers of the query, or single parameters.
    answers_many: refuses unknown parameters though it has none; lists, and operations with a query, do anyway.
    """

    operation_id: str
    summary: str
    description: str
    responses: ResponseDescription | Sequence[ResponseDescription]
    problems: Sequence[type[Problem]] = ()
    body: type[serializers.Serializer[Any]] | None = None
    bodies: Mapping[str, Any] = field(default_factory=dict)
    body_may_be_empty: bool = False
    parameters: Sequence[Any] = ()
    answers_many: bool = False
    position: int = field(default_factory=lambda: next(_positions))

    def __call__(self, method: F) -> F:
        method.operation = self  # type: ignore[attr-defined]
        return method


@dataclass(frozen=True)
class Access:
    """What the view adds to the description of an operation.

    note: a sentence of its description.
    headers: names of response headers.
    """

    note: str = ""
    problems: Sequence[type[Problem]] = ()
    parameters: Sequence[OpenApiParameter] = ()
    headers: Sequence[str] = ()


PUBLIC = Access()


def describe_view(access: Callable[[Any, str], Access] | None = None, **operations: Operation) -> Callable[[V], V]:
    """Return a decorator that describes the methods of a view.

    access: by view and method name.
    operations: those of inherited methods; others have their own (Operation).
    Problems are derived: of bodies, of query parameters, of ids in the path, and those of every operation.
    """

    def describe(view: V) -> V:
        own = {name: method.operation for name, method in vars(view).items() if hasattr(method, "operation")}
        by_method: dict[str, Operation] = {**operations, **own}
        described = {
            name: _describe(view, name, operation, access(view, name) if access else PUBLIC)
            for name, operation in by_method.items()
        }
        queries = {name: _declared_query(view, name, operation) for name, operation in by_method.items()}
        view.queries = {name: query for name, query in queries.items() if query}  # type: ignore[attr-defined]
        return extend_schema_view(**described)(view)

    return describe


def http_method(view: Any, name: str) -> str:
    """Return the HTTP method of a view method, in lower case."""
    return str(next(iter(getattr(getattr(view, name), "mapping", ())), HTTP_METHODS.get(name, name)))


def _describe(view: Any, name: str, operation: Operation, access: Access) -> Callable[[Any], Any]:
    responses = [operation.responses] if isinstance(operation.responses, ResponseDescription) else operation.responses
    parameters = [*access.parameters, *operation.parameters]
    if name == "list":
        pagination = view.pagination_class
        responses = [_page_of(described, pagination) for described in responses]
        parameters += _paging(pagination.default_limit)
    problems = [*operation.problems, *_implied_problems(view, name, operation), *access.problems]
    return extend_schema(
        operation_id=operation.operation_id,
        summary=operation.summary,
        description=f"{operation.description}\n\n{access.note}".strip(),
        request=operation.body,
        responses={(described.status, described.media_type): described.openapi for described in responses},
        examples=[OpenApiExample(title, value, request_only=True) for title, value in operation.bodies.items()],
        parameters=parameters,
        extensions={
            PROBLEMS: sorted({problem.code for problem in problems}),
            POSITION: operation.position,
            HEADERS: {str(described.status): [*described.headers, *access.headers] for described in responses},
            BODY_MAY_BE_EMPTY: operation.body_may_be_empty,
        },
    )


def _declared_query(view: Any, name: str, operation: Operation) -> DeclaredQuery | None:
    """Return the query of a view method; None if it ignores query parameters."""
    has_filters = http_method(view, name) == "get" and not _is_detail(view, name)
    query = DeclaredQuery(
        inputs=tuple(parameter for parameter in operation.parameters if isinstance(parameter, type)),
        filterset=getattr(view, "filterset_class", None) if has_filters else None,
        has_pages=name == "list",
    )
    return query if query.names or operation.answers_many else None


def _is_detail(view: Any, name: str) -> bool:
    return bool(getattr(getattr(view, name), "detail", name in DETAIL_METHODS))


def _implied_problems(view: Any, name: str, operation: Operation) -> Iterator[type[Problem]]:
    yield from COMMON_PROBLEMS
    if operation.body:
        yield from BODY_PROBLEMS
    if operation.body or _declared_query(view, name, operation):
        yield errors.InvalidFields
    if _is_detail(view, name):
        yield errors.NotFound


def _page_of(item: ResponseDescription, pagination: type[PagePagination]) -> ResponseDescription:
    """Return the response of a list, `{data, total, page, limit}`, from the description of one item."""
    name = item.shape.__name__.removesuffix("Serializer").removesuffix("Item")
    members = {
        "data": item.shape(many=True, help_text="The items, newest first."),
        "total": serializers.IntegerField(min_value=0, help_text="The number of items on all pages."),
        "page": serializers.IntegerField(min_value=1, help_text="The number of this page, from 1."),
        "limit": serializers.IntegerField(
            min_value=1, max_value=MAX_LIMIT, help_text=f"The number of items per page, at most {MAX_LIMIT}."
        ),
        **pagination.more_members,
    }
    examples = {
        title: {"data": [value], "total": 1, "page": 1, "limit": pagination.default_limit}
        for title, value in item.examples.items()
    }
    return replace(item, shape=type(f"{name}Page", (serializers.Serializer,), members), examples=examples)


def _paging(limit: int) -> list[OpenApiParameter]:
    """Return the parameters page and limit; a limit above 100 is reduced, so the schema has no such maximum."""
    return [
        OpenApiParameter(name, PAGE_NUMBER | {"default": default}, description=text)
        for name, default, text in (
            ("page", 1, "The page number, from 1. A page past the end is empty."),
            (
                "limit",
                limit,
                f"Items per page. A larger value than {MAX_LIMIT} is reduced to {MAX_LIMIT}, also in the response.",
            ),
        )
    ]
