"""The OpenAPI document, generated from the code by drf-spectacular once per process."""

import copy
import inspect
import json
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from django.conf import settings
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers

from core.api import schema_fields  # noqa: F401 - registers the schemas of fields
from core.api.errors import Member, Problem, documented_problems
from core.api.exception_handler import CONTENT_TYPE
from core.api.fields import NotEmpty
from core.api.schema import (
    BODY_MAY_BE_EMPTY,
    HEADERS,
    ID,
    POSITION,
    PROBLEMS,
    Schema,
)
from core.lib.datetimes import parse_datetime
from core.lib.model_fields import IdField
from core.lib.worker.once import once

INTRODUCTION = Path(__file__).with_name("introduction.md")
METHODS = ("GET", "POST", "PATCH", "DELETE")
# In the order of the documentation.
TAGS = {
    "Emails": "Send emails, list them and follow their events.",
    "Templates": "Stored content with variables, rendered when an email is sent.",
    "Webhooks": "Endpoints that receive events.",
    "Events": "All events of the workspace in order, as pages and as a stream.",
    "Streams": "Kinds of email, each with its own unsubscribes and complaints.",
    "Alerts": "Thresholds of rates and of the quota, about which owners and webhooks are notified.",
    "Inbound": "Received emails, the routes of their addresses, and blocked senders.",
    "Erasures": "Erasure of people by address, with a receipt.",
    "Exports": "The records and messages of a person, as a file.",
    "Suppressions": "Addresses that must not be sent to.",
    "Domains": "Sending domains and their DNS records.",
    "Analytics": "Totals, rates and daily volume.",
    "Queue": "The queue depth of the workspace.",
    "Account": "The workspace and the API key of the request.",
    "Management": "Workspaces, their members, API keys, usage and audit log.",
    "Documentation": "The OpenAPI document.",
}
OTHER_TAGS = {"me": "Account", "subject-exports": "Exports", "admin": "Management", "openapi.json": "Documentation"}
RESPONSE_HEADERS: dict[str, tuple[str, Schema]] = {
    "X-Request-Id": (
        "The id of this request. Include it when you ask for help.",
        {"type": "string", "pattern": "^req_"},
    ),
    "RateLimit-Limit": ("The number of requests allowed in one burst.", {"type": "integer", "minimum": 1}),
    "RateLimit-Remaining": ("The number of requests left in the current burst.", {"type": "integer", "minimum": 0}),
    "RateLimit-Reset": ("Seconds until the full burst is available again.", {"type": "integer", "minimum": 0}),
    "Retry-After": ("Seconds to wait before the next request.", {"type": "integer", "minimum": 1}),
    "WWW-Authenticate": ("The authentication scheme.", {"type": "string"}),
    "Allow": ("The methods that this path supports.", {"type": "string"}),
    "Idempotent-Replayed": (
        "The response of an earlier request with the same idempotency key.",
        {"type": "string", "const": "true"},
    ),
    "Idempotency-Body-Mismatch": ("The earlier request had a different body.", {"type": "string", "const": "true"}),
    "X-Export-Truncated": ("More emails match than the file contains.", {"type": "string", "const": "true"}),
    "Content-Disposition": ("The file name of the download.", {"type": "string"}),
}
# Descriptions of fields without a help text, which mean the same in every resource.
COMMON_TEXTS = {
    "id": "The id of the resource. Store it unchanged.",
    "name": "The name.",
    "subject": "The subject.",
    "status": "The current status.",
    "email": "The address.",
    "plan": "The plan, which sets quota, domains and retention.",
    "scope": "The scope of the key.",
    "role": "The role of the member.",
    "limits": "The limits of the key. An empty or missing value is no limit.",
    "createdAt": "The time of creation.",
    "expiresAt": "The time at which it expires; null if it does not.",
    "deleted": "Always true.",
    "warnings": "Parts of the request that were accepted but may be mistakes.",
    "templateData": "The values of the template's variables.",
}
COMPONENT = "#/components/schemas/"
# Clients that are generated from this document meet codes of later versions (docs/decisions/0299).
OTHER_PROBLEM = "OtherProblem"
RATE_LIMIT = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


class ApiSchema(AutoSchema):
    """drf-spectacular's view inspection, corrected where it cannot derive the API's behaviour."""

    def get_tags(self) -> list[str]:
        (resource, *_) = self._tokenize_path()
        return [OTHER_TAGS.get(resource, resource.capitalize())]

    def _is_list_view(self, serializer: Any = None) -> bool:
        # core.api.schema describes pages.
        return False

    def get_filter_backends(self) -> list[Any]:
        is_filtered = self.method == "GET" and not getattr(self.view, "detail", True)
        return getattr(self.view, "filter_backends", []) if is_filtered else []

    def _get_parameters(self) -> list[Schema]:
        parameters = super()._get_parameters()
        filters = {parameter["name"] for parameter in self._get_filter_parameters()}  # type: ignore[no-untyped-call]
        return sorted(parameters, key=lambda parameter: parameter["name"] in filters)

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:  # noqa: FBT001, FBT002
        schema = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        # Used only by the hook that names enumerations, which is disabled.
        schema.pop("x-spec-enum-id", None)
        return schema

    def _map_model_field(self, model_field: Any, direction: Any) -> Any:
        if isinstance(model_field, IdField):
            return {"type": "string", "pattern": f"^{model_field.prefix}{ID}$"}
        return super()._map_model_field(model_field, direction)  # type: ignore[no-untyped-call]

    def _get_serializer_field_meta(self, field: Any, direction: Any) -> Any:
        meta = super()._get_serializer_field_meta(field, direction)  # type: ignore[no-untyped-call]
        meta.pop("readOnly", None)
        if field.field_name in COMMON_TEXTS:
            meta.setdefault("description", COMMON_TEXTS[field.field_name])
        if direction == "request" and isinstance(field, serializers.CharField) and not field.allow_blank:
            meta["minLength"] = 1
        return meta

    def _insert_field_validators(self, field: Any, schema: Any) -> None:
        # Our patterns define whether an empty string matches.
        if getattr(field, "allow_blank", False):
            field = copy.copy(field)
            field.allow_blank = False
        super()._insert_field_validators(field, schema)  # type: ignore[no-untyped-call]

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        # In OpenAPI 3.1 a reference may have a description beside it.
        for field in schema.get("properties", {}).values():
            field.update(*field.pop("allOf", ()))
        if isinstance(serializer, NotEmpty):
            schema["minProperties"] = 1
        if direction == "response":
            is_row = isinstance(serializer, serializers.ModelSerializer)
            always = {name for name, field in serializer.fields.items() if is_row or field.required or field.read_only}
            schema["required"] = sorted(always - getattr(serializer, "optional_fields", frozenset()))
        return schema


def resource_paths(endpoints: list[Any]) -> list[Any]:
    """Preprocessing hook: keep paths under /v1 only, without the trailing slash."""
    under_v1 = [(path.rstrip("/"), *rest) for path, *rest in endpoints if path.startswith("/v1/")]
    return sorted(under_v1, key=lambda endpoint: (endpoint[0], METHODS.index(endpoint[2])))


def complete_document(result: Schema, generator: Any, request: Any, public: bool) -> Schema:  # noqa: FBT001
    """Postprocessing hook: add the problems, the response headers and the introduction."""
    result["paths"] = _in_order(result["paths"])
    operations = [operation for path in result["paths"].values() for operation in path.values()]
    for operation in operations:
        _complete_operation(operation)
    used = {tag for operation in operations for tag in operation["tags"]}
    result["tags"] = [{"name": name, "description": text} for name, text in TAGS.items() if name in used]
    result["info"]["description"] = INTRODUCTION.read_text().replace("{base_url}", settings.PUBLIC_URL)
    components = result["components"]
    for schema in components["schemas"].values():
        for member in schema.get("properties", {}).values():
            # openapi-typescript requires members that have a default.
            member.pop("default", None)
    components["headers"] = {
        name: {"description": text, "schema": schema} for name, (text, schema) in RESPONSE_HEADERS.items()
    }
    components["headers"]["X-Request-Id"]["required"] = True
    components["schemas"].update(_problem_schemas())
    components["examples"] = {
        code: {"summary": problem.title, "value": problem_example(problem)}
        for code, problem in documented_problems().items()
    }
    return result


def _in_order(paths: Schema) -> Schema:
    """Return the paths, and the methods of each, in the order of their descriptions."""
    last = sys.maxsize
    for path, methods in paths.items():
        paths[path] = dict(sorted(methods.items(), key=lambda item: item[1].get(POSITION, last)))
    return dict(
        sorted(paths.items(), key=lambda item: min(operation.get(POSITION, last) for operation in item[1].values()))
    )


def _complete_operation(operation: Schema) -> None:
    by_status: dict[str, list[type[Problem]]] = {}
    documented = documented_problems()
    for code in operation.pop(PROBLEMS, ()):
        by_status.setdefault(str(documented[code].status), []).append(documented[code])
    headers = {status: set(names) for status, names in operation.pop(HEADERS, {}).items()}
    for status, problems in sorted(by_status.items()):
        operation["responses"][status] = _problem_response(problems)
        headers[status] = {name for problem in problems for name in problem.header_names}
    for status, response in operation["responses"].items():
        names = {"X-Request-Id", *headers.get(status, ())}
        if operation.get("security") and status != "401":
            names.update(RATE_LIMIT)
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in sorted(names)}
    if "requestBody" in operation:
        operation["requestBody"]["required"] = not operation[BODY_MAY_BE_EMPTY]
    operation.pop(BODY_MAY_BE_EMPTY, None)
    operation.pop(POSITION, None)


def _problem_response(problems: list[type[Problem]]) -> Schema:
    examples = {problem.code: {"$ref": f"#/components/examples/{problem.code}"} for problem in problems}
    titles = "; ".join(problem.title for problem in problems)
    return {"description": f"{titles}.", "content": {CONTENT_TYPE: {"schema": _one_of(problems), "examples": examples}}}


def _one_of(problems: list[type[Problem]]) -> Schema:
    """Return the schema of the errors of a status, or of one that a later version has."""
    references = {problem.code: f"{COMPONENT}{_name(problem)}" for problem in problems}
    discriminator = {"propertyName": "code", "mapping": references}
    known = [{"$ref": reference} for reference in references.values()]
    return {"oneOf": [*known, {"$ref": COMPONENT + OTHER_PROBLEM}], "discriminator": discriminator}


def _name(problem: type[Problem]) -> str:
    return f"{problem.__name__}Problem"


def _problem_schemas() -> dict[str, Schema]:
    """Return the common schema of problems, one schema per code, and that of all other codes."""
    text = {"type": "string"}
    common = {
        "type": {"type": "string", "format": "uri", "description": "A link to the documentation of this error."},
        "title": {**text, "description": "A short summary of the error type."},
        "status": {"type": "integer", "description": "The HTTP status code."},
        "code": {**text, "description": "A stable, machine-readable error code."},
        "detail": {**text, "description": "A human-readable explanation of this error."},
        "requestId": {**text, "description": "The id of the request, as in X-Request-Id."},
    }
    base = {
        "type": "object",
        "description": "An error, RFC 9457. Some codes add further members.",
        "properties": common,
        "required": list(common),
    }
    # Exactly one schema of `oneOf` may match.
    other = {**common["code"], "pattern": f"^(?!({'|'.join(documented_problems())})$)"}
    return {
        "Problem": base,
        **{_name(problem): _problem_schema(problem, common) for problem in documented_problems().values()},
        OTHER_PROBLEM: {
            **base,
            "title": "Other error",
            "description": "An error of a later version, with a code that this document does not have.",
            "properties": {**common, "code": other},
        },
    }


def _problem_schema(problem: type[Problem], common: Schema) -> Schema:
    """Return the schema of one code, with all of its members: generators do not merge a text and a constant."""
    fixed = {
        "status": {**common["status"], "const": problem.status},
        "code": {**common["code"], "const": problem.code},
    }
    added = {name: _schema_of(member) for name, member in problem.added_members.items()}
    required = [name for name, member in problem.added_members.items() if not member.is_optional]
    meaning = " ".join(inspect.cleandoc(problem.__doc__ or "").partition("\n\n")[0].split())
    return {
        "title": problem.title,
        "type": "object",
        "description": meaning,
        "properties": {**common, **fixed, **added},
        "required": [*common, *required],
    }


def _schema_of(example: Any) -> Schema:
    """Return the schema of values like the example."""
    if isinstance(example, Member):
        return {**_schema_of(example.example), "description": example.description}
    if isinstance(example, dict):
        properties = {name: _schema_of(value) for name, value in example.items()}
        required = [name for name, value in example.items() if not getattr(value, "is_optional", False)]
        return {"type": "object", "properties": properties, "required": required}
    if isinstance(example, list):
        return {"type": "array", "items": _schema_of(example[0])}
    if isinstance(example, Enum):
        return {"type": "string", "enum": [member.value for member in type(example)]}
    if isinstance(example, int):
        return {"type": "integer"}
    return {"type": "string", "format": "date-time"} if parse_datetime(example) else {"type": "string"}


def problem_example(problem: type[Problem]) -> dict[str, Any]:
    """Return an example of the JSON body of this problem."""
    return {
        "type": f"{settings.PUBLIC_URL}/docs/errors#{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.example,
        "requestId": "req_0Uf7m2kQ9VxHc3NwZrTb4L",
        **_example_of(problem.added_members),
    }


def _example_of(value: Any) -> Any:
    """Return an example without the descriptions of its members."""
    if isinstance(value, Member):
        return _example_of(value.example)
    if isinstance(value, Mapping):
        return {name: _example_of(member) for name, member in value.items()}
    return [_example_of(item) for item in value] if isinstance(value, list) else value


# The generator has global state: two threads must not use it at the same time.
@once
def openapi_document() -> bytes:
    """Return the document as JSON; cached until the process ends."""
    result = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return json.dumps(result, ensure_ascii=False, default=str).encode()
