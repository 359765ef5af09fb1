"""How an app describes its operations: one `operation(…)` for each, one `known(…)` for each problem.

    emails_schema = extend_schema_view(
        send=operation("sendEmail", "Send an email", "…", answers=[answer(202, AcceptedSerializer, …)], problems=[…]),
    )

Nothing here is read while a request is served; api.openapi makes the document out of it.
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

# Carried from here to the document, and taken out of it there (api.openapi).
PROBLEMS = "x-problems"
HEADERS = "x-headers"
PLACE = "x-place"
BODY_MAY_BE_EMPTY = "x-body-may-be-empty"


@dataclass(frozen=True)
class KnownProblem:
    """What a problem looks like on the wire.

    detail and example are those of the example shown; members describe what the code adds to the common
    members, all of them always there but the optional ones. headers come with the answer.
    """

    problem: type[Problem]
    detail: str
    members: Mapping[str, Schema] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    example: Mapping[str, Any] = field(default_factory=dict)
    headers: tuple[str, ...] = ()


KNOWN: dict[str, KnownProblem] = {}


def known(problem: type[Problem], detail: str, **options: Any) -> KnownProblem:
    """Describe a problem, once in the whole project."""
    described = KnownProblem(problem, detail, **options)
    KNOWN[problem.code] = described
    return described


def array_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def object_of(properties: Mapping[str, Schema], *, optional: Iterable[str] = ()) -> Schema:
    """Return an object's schema; all members are required but the optional ones."""
    required = [name for name in properties if name not in set(optional)]
    return {"type": "object", "properties": dict(properties), "required": required}


TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
# A bound of a range, in a query.
MOMENT: Schema = {
    "anyOf": [
        {"type": "string", "format": "date"},
        {"type": "string", "format": "date-time"},
        # As with every filter, an empty one is none.
        {"const": ""},
    ]
}

INVALID_JSON = known(errors.InvalidJson, "Expecting ',' delimiter at line 3, column 5.")
NOT_FOUND = known(errors.NotFound, "There is nothing here, or it is not yours.")
NOT_ACCEPTABLE = known(errors.NotAcceptable, "Answers are application/json; change the Accept header.")
LENGTH_REQUIRED = known(errors.LengthRequired, "Send the body with a Content-Length; chunked bodies are not taken.")
PAYLOAD_TOO_LARGE = known(errors.PayloadTooLarge, "The body may have 20,971,520 bytes; this one has 31,457,280.")
UNSUPPORTED_MEDIA_TYPE = known(errors.UnsupportedMediaType, "Send the body as application/json.")
VALIDATION_ERROR = known(
    errors.InvalidFields,
    "Some fields are not valid; see errors.",
    members={"errors": array_of(object_of({"field": TEXT, "code": TEXT, "detail": TEXT}))},
    example={
        "errors": [
            {"field": "to[1]", "code": "invalid_email", "detail": "'ada@' is not an email address."},
            {
                "field": "scheduledfor",
                "code": "unknown_field",
                "detail": "There is no field 'scheduledfor'. Did you mean 'scheduledFor'?",
            },
        ]
    },
)
RATE_LIMIT_EXCEEDED = known(
    errors.RateLimitExceeded,
    "A workspace may make 50 requests a second, in bursts of up to 100. Try again in 1 s; see Retry-After.",
    headers=("Retry-After",),
)
INTERNAL_ERROR = known(errors.InternalError, errors.internal_error().detail)
SERVICE_UNAVAILABLE = known(errors.ServiceUnavailable, errors.service_unavailable().detail, headers=("Retry-After",))
OVERLOADED = known(errors.Overloaded, errors.overloaded().detail, headers=("Retry-After",))
# Not of an operation, but of a path: told on the page of errors alone.
known(errors.MethodNotAllowed, "This path does not take that method; see Allow.", headers=("Allow",))

ANY_ANSWER = (NOT_ACCEPTABLE, INTERNAL_ERROR, SERVICE_UNAVAILABLE, OVERLOADED)
# The document tells operations in the order in which they are described.
_places = itertools.count()

BODY = (INVALID_JSON, LENGTH_REQUIRED, PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE)


@dataclass(frozen=True)
class Answer:
    """One 2xx: examples are values by their title; headers name those that it may bring."""

    status: int
    shape: Any
    description: str
    examples: Mapping[str, Any]
    headers: tuple[str, ...] = ()
    media_type: str = "application/json"

    @property
    def response(self) -> OpenApiResponse:
        return OpenApiResponse(self.shape, self.description, examples_of(self.examples))


def answer(status: int, shape: Any, description: str, **options: Any) -> Answer:
    """shape: a serializer, or a schema. options: example, or examples by title; headers; media_type."""
    examples = options.pop("examples", None) or {description.rstrip("."): options.pop("example")}
    return Answer(status, shape, description, examples, **options)


def operation(
    operation_id: str,
    summary: str,
    description: str,
    *,
    answers: Sequence[Answer],
    problems: Iterable[KnownProblem] = (),
    body: type[serializers.Serializer[Any]] | None = None,
    bodies: Mapping[str, Any] | None = None,
    body_may_be_empty: bool = False,
    parameters: Sequence[OpenApiParameter] = (),
    **options: Any,
) -> Callable[[Any], Any]:
    """Describe a method of a view. bodies: examples of the body by title.

    Problems that every operation may answer, or every one with a body, need no name.
    """
    of_body = (*BODY, VALIDATION_ERROR) if body else ()
    all_problems = [*problems, *of_body, *ANY_ANSWER]
    extensions = {
        PROBLEMS: sorted({one.problem.code for one in all_problems}),
        PLACE: next(_places),
        HEADERS: {str(one.status): list(one.headers) for one in answers},
        BODY_MAY_BE_EMPTY: body_may_be_empty,
    }
    return extend_schema(
        operation_id=operation_id,
        summary=summary,
        description=description,
        request=body,
        responses={(one.status, one.media_type): one.response for one in answers},
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
    """Return page and limit. They have no maximum of 100: a larger limit is served as 100, not refused."""
    number = {"type": "integer", "minimum": 1, "maximum": 999_999_999}
    return (
        query("page", {**number, "default": 1}, "The page, from 1; one past the end is empty."),
        query(
            "limit",
            {**number, "default": default},
            f"Items per page, at most {MAX_LIMIT}; more is served as {MAX_LIMIT}, and echoed so.",
        ),
    )


def page_of(items: type[serializers.Serializer[Any]], *, name: str) -> type[serializers.Serializer[Any]]:
    """Return the shape of a list: `{data, total, page, limit}`."""
    members = {
        "data": items(many=True),
        "total": serializers.IntegerField(min_value=0),
        "page": serializers.IntegerField(min_value=1),
        "limit": serializers.IntegerField(min_value=1, max_value=MAX_LIMIT),
    }
    return type(name, (serializers.Serializer,), members)


class DeletedSerializer(serializers.Serializer[Any]):
    """What was deleted."""

    id = serializers.CharField()
    deleted = serializers.BooleanField()
