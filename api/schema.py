"""OpenAPI descriptions: an app writes one `operation(…)` per view method and one `describe_problem(…)` per error.

    emails_schema = extend_schema_view(
        send=operation("sendEmail", "Send an email", "…", responses=[response(202, AcceptedOutput, …)], problems=[…]),
    )

Requests do not use these descriptions; api.openapi builds the document from them.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from api import errors
from api.errors import Problem
from api.pagination import MAX_LIMIT

Schema = dict[str, Any]
ID = "[0-9A-Za-z]{22}"

# Extensions that api.openapi reads and removes from the document.
PROBLEMS = "x-problems"
HEADERS = "x-headers"
POSITION = "x-position"
BODY_MAY_BE_EMPTY = "x-body-may-be-empty"


@dataclass(frozen=True)
class ProblemDescription:
    """The wire format of a problem.

    detail, example: values of the documented example. members: schemas of the members that this code adds to the common
    ones, all required except the optional ones. headers: names of additional response headers.
    """

    problem: type[Problem]
    detail: str
    members: Mapping[str, Schema] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    example: Mapping[str, Any] = field(default_factory=dict)
    headers: tuple[str, ...] = ()


PROBLEM_DESCRIPTIONS: dict[str, ProblemDescription] = {}


def describe_problem(problem: type[Problem], detail: str, **options: Any) -> ProblemDescription:
    """Register the description of a problem; each problem is described once in the project."""
    described = ProblemDescription(problem, detail, **options)
    PROBLEM_DESCRIPTIONS[problem.code] = described
    return described


def array_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def object_of(properties: Mapping[str, Schema], *, optional: Iterable[str] = ()) -> Schema:
    """Return the schema of an object; all members are required except the optional ones."""
    required = [name for name in properties if name not in set(optional)]
    return {"type": "object", "properties": dict(properties), "required": required}


TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
# One end of a range in a query.
DATE_OR_DATETIME: Schema = {
    "anyOf": [
        {"type": "string", "format": "date"},
        {"type": "string", "format": "date-time"},
        # As with every filter, an empty value counts as absent.
        {"const": ""},
    ]
}

INVALID_JSON = describe_problem(errors.InvalidJson, "Expecting ',' delimiter at line 3, column 5.")
NOT_FOUND = describe_problem(errors.NotFound, errors.NOT_FOUND_DETAIL)
NOT_ACCEPTABLE = describe_problem(errors.NotAcceptable, errors.NOT_ACCEPTABLE_DETAIL)
LENGTH_REQUIRED = describe_problem(
    errors.LengthRequired, "Send a Content-Length header; chunked bodies are not supported."
)
PAYLOAD_TOO_LARGE = describe_problem(
    errors.PayloadTooLarge, "The body has 31,457,280 bytes; at most 20,971,520 are allowed."
)
UNSUPPORTED_MEDIA_TYPE = describe_problem(errors.UnsupportedMediaType, "Send the body as application/json.")
VALIDATION_ERROR = describe_problem(
    errors.InvalidFields,
    errors.INVALID_FIELDS_DETAIL,
    members={"errors": array_of(object_of({"field": TEXT, "code": TEXT, "detail": TEXT}))},
    example={
        "errors": [
            {"field": "to[1]", "code": "invalid_email", "detail": "'ada@' is not an email address."},
            {
                "field": "scheduledfor",
                "code": "unknown_field",
                "detail": "Unknown field 'scheduledfor'. Did you mean 'scheduledFor'?",
            },
        ]
    },
)
RATE_LIMIT_EXCEEDED = describe_problem(
    errors.RateLimitExceeded,
    "A workspace can make 50 requests per second, with bursts of up to 100. Try again in 1 s; see Retry-After.",
    headers=("Retry-After",),
)
INTERNAL_ERROR = describe_problem(errors.InternalError, errors.internal_error().detail)
SERVICE_UNAVAILABLE = describe_problem(
    errors.ServiceUnavailable, errors.service_unavailable().detail, headers=("Retry-After",)
)
OVERLOADED = describe_problem(errors.Overloaded, errors.overloaded().detail, headers=("Retry-After",))
# An error of paths, not of operations: only the error catalogue page documents it.
describe_problem(errors.MethodNotAllowed, errors.METHOD_NOT_ALLOWED_DETAIL, headers=("Allow",))

COMMON_PROBLEMS = (NOT_ACCEPTABLE, INTERNAL_ERROR, SERVICE_UNAVAILABLE, OVERLOADED)
# The document lists operations in the order of their descriptions.
_positions = itertools.count()

BODY_PROBLEMS = (INVALID_JSON, LENGTH_REQUIRED, PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE)


@dataclass(frozen=True)
class ResponseDescription:
    """A successful response. examples: values by title. headers: names of the headers that it may have."""

    status: int
    shape: Any
    description: str
    examples: Mapping[str, Any]
    headers: tuple[str, ...] = ()
    media_type: str = "application/json"

    @property
    def openapi(self) -> OpenApiResponse:
        return OpenApiResponse(self.shape, self.description, examples_of(self.examples))


def response(status: int, shape: Any, description: str, **options: Any) -> ResponseDescription:
    """Describe a successful response.

    shape: a serializer or a schema. options: example, or examples by title; headers; media_type.
    """
    examples = options.pop("examples", None) or {description.rstrip("."): options.pop("example")}
    return ResponseDescription(status, shape, description, examples, **options)


def operation(
    operation_id: str,
    summary: str,
    description: str,
    *,
    responses: Sequence[ResponseDescription],
    problems: Iterable[ProblemDescription] = (),
    body: type[serializers.Serializer[Any]] | None = None,
    bodies: Mapping[str, Any] | None = None,
    body_may_be_empty: bool = False,
    parameters: Sequence[OpenApiParameter] = (),
    **options: Any,
) -> Callable[[Any], Any]:
    """Describe a method of a view. bodies: examples of the body by title.

    Problems common to all operations, or to all operations with a body, are added automatically.
    """
    body_problems = (*BODY_PROBLEMS, VALIDATION_ERROR) if body else ()
    all_problems = [*problems, *body_problems, *COMMON_PROBLEMS]
    extensions = {
        PROBLEMS: sorted({one.problem.code for one in all_problems}),
        POSITION: next(_positions),
        HEADERS: {str(one.status): list(one.headers) for one in responses},
        BODY_MAY_BE_EMPTY: body_may_be_empty,
    }
    return extend_schema(
        operation_id=operation_id,
        summary=summary,
        description=description,
        request=body,
        responses={(one.status, one.media_type): one.openapi for one in responses},
        examples=[OpenApiExample(title, value, request_only=True) for title, value in (bodies or {}).items()],
        parameters=list(parameters),
        extensions=extensions,
        **options,
    )


def examples_of(values: Mapping[str, Any]) -> list[OpenApiExample]:
    return [OpenApiExample(title, value) for title, value in values.items()]


def query(name: str, schema: Schema, description: str, **options: Any) -> OpenApiParameter:
    return OpenApiParameter(name, schema, OpenApiParameter.QUERY, description=description, **options)


def header(name: str, schema: Schema, description: str, **options: Any) -> OpenApiParameter:
    return OpenApiParameter(name, schema, OpenApiParameter.HEADER, description=description, **options)


def paging(*, default: int) -> tuple[OpenApiParameter, OpenApiParameter]:
    """Return the parameters page and limit; a limit above 100 is reduced, so the schema has no such maximum."""
    number = {"type": "integer", "minimum": 1, "maximum": 999_999_999}
    return (
        query("page", {**number, "default": 1}, "The page number, from 1. A page past the end is empty."),
        query(
            "limit",
            {**number, "default": default},
            f"Items per page. A larger value than {MAX_LIMIT} is reduced to {MAX_LIMIT}, also in the response.",
        ),
    )


def page_of(items: type[serializers.Serializer[Any]], *, name: str) -> type[serializers.Serializer[Any]]:
    """Return the serializer of a list: `{data, total, page, limit}`."""
    members = {
        "data": items(many=True),
        "total": serializers.IntegerField(min_value=0),
        "page": serializers.IntegerField(min_value=1),
        "limit": serializers.IntegerField(min_value=1, max_value=MAX_LIMIT),
    }
    return type(name, (serializers.Serializer,), members)


class DeletedSerializer(serializers.Serializer[Any]):
    """The id of a deleted object."""

    id = serializers.CharField()
    deleted = serializers.BooleanField()
