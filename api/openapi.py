"""The OpenAPI document: made from the code by drf-spectacular, once per process."""

import copy
import functools
import json
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers

from api import schema_fields  # noqa: F401 - registers how the fields are shown
from api.exception_handler import CONTENT_TYPE
from api.schema import BODY_MAY_BE_EMPTY, HEADERS, ID, KNOWN, PLACE, PROBLEMS, KnownProblem, Schema
from lib.model_fields import IdField

INTRODUCTION = Path(__file__).with_name("introduction.md")
METHODS = ("GET", "POST", "PATCH", "DELETE")
# In the order of the documentation.
TAGS = {
    "Emails": "Send emails, look at them, follow what happens to them.",
    "Templates": "Texts with variables, kept here and filled in when an email is sent.",
    "Webhooks": "Where events are posted to.",
    "Suppressions": "Addresses that are never sent to.",
    "Domains": "The domains that emails are sent from.",
    "Analytics": "Totals, rates and volume.",
    "Queue": "What waits, and what is on its way.",
    "Account": "The workspace and the key that a call is made with.",
    "Documentation": "This description, for machines.",
}
OTHER_TAGS = {"me": "Account", "openapi.json": "Documentation"}
RESPONSE_HEADERS: dict[str, tuple[str, Schema]] = {
    "X-Request-Id": ("Names this request; tell it when you ask for help.", {"type": "string", "pattern": "^req_"}),
    "RateLimit-Limit": ("Requests that may be made in one burst.", {"type": "integer", "minimum": 1}),
    "RateLimit-Remaining": ("How many of them are left.", {"type": "integer", "minimum": 0}),
    "RateLimit-Reset": ("Seconds until all of them are there again.", {"type": "integer", "minimum": 0}),
    "Retry-After": ("Seconds to wait before the next attempt.", {"type": "integer", "minimum": 1}),
    "WWW-Authenticate": ("How to authenticate.", {"type": "string"}),
    "Allow": ("The methods that this path takes.", {"type": "string"}),
    "Idempotent-Replayed": ("This is the answer of an earlier request.", {"type": "string", "const": "true"}),
    "Idempotency-Body-Mismatch": ("That earlier request had another body.", {"type": "string", "const": "true"}),
    "X-Export-Truncated": ("There are more emails than rows.", {"type": "string", "const": "true"}),
    "Content-Disposition": ("A file name.", {"type": "string"}),
}
RATE_LIMIT = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


class ApiSchema(AutoSchema):
    """drf-spectacular's reading of views and serializers, with the few things that it cannot know."""

    def get_tags(self) -> list[str]:
        (resource, *_) = self._tokenize_path()
        return [OTHER_TAGS.get(resource, resource.capitalize())]

    def _is_list_view(self, serializer: Any = None) -> bool:
        # A list names its page's shape itself.
        return False

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:  # noqa: FBT001, FBT002
        schema = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        # A mark for the hook that names enumerations, which we do without.
        schema.pop("x-spec-enum-id", None)
        return schema

    def _map_model_field(self, model_field: Any, direction: Any) -> Any:
        if isinstance(model_field, IdField):
            return {"type": "string", "pattern": f"^{model_field.prefix}{ID}$"}
        return super()._map_model_field(model_field, direction)  # type: ignore[no-untyped-call]

    def _get_serializer_field_meta(self, field: Any, direction: Any) -> Any:
        meta = super()._get_serializer_field_meta(field, direction)  # type: ignore[no-untyped-call]
        meta.pop("readOnly", None)
        if direction == "response":
            meta.pop("default", None)
        elif isinstance(field, serializers.CharField) and not field.allow_blank:
            meta["minLength"] = 1
        return meta

    def _insert_field_validators(self, field: Any, schema: Any) -> None:
        # A pattern of ours tells by itself whether it takes the empty string.
        if getattr(field, "allow_blank", False):
            field = copy.copy(field)
            field.allow_blank = False
        super()._insert_field_validators(field, schema)  # type: ignore[no-untyped-call]

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if direction == "response":
            is_row = isinstance(serializer, serializers.ModelSerializer)
            always = {name for name, field in serializer.fields.items() if is_row or field.required or field.read_only}
            schema["required"] = sorted(always)
        return schema


def resource_paths(endpoints: list[Any]) -> list[Any]:
    """Preprocessing hook: leave out what is not under /v1, name each path without its slash."""
    ours = [(path.rstrip("/"), *rest) for path, *rest in endpoints if path.startswith("/v1/")]
    return sorted(ours, key=lambda one: (one[0], METHODS.index(one[2])))


def complete(result: Schema, generator: Any, request: Any, public: bool) -> Schema:  # noqa: FBT001
    """Postprocessing hook: add the problems, the headers and the introduction."""
    result["paths"] = _in_order(result["paths"])
    operations = [one for path in result["paths"].values() for one in path.values()]
    for one in operations:
        _complete_operation(one)
    used = {tag for one in operations for tag in one["tags"]}
    result["tags"] = [{"name": name, "description": told} for name, told in TAGS.items() if name in used]
    result["info"]["description"] = INTRODUCTION.read_text().replace("{base_url}", settings.PUBLIC_URL)
    components = result["components"]
    components["headers"] = {
        name: {"description": told, "schema": schema} for name, (told, schema) in RESPONSE_HEADERS.items()
    }
    components["headers"]["X-Request-Id"]["required"] = True
    components["schemas"].update(_problem_schemas())
    components["examples"] = {code: _example(one) for code, one in KNOWN.items()}
    return result


def _in_order(paths: Schema) -> Schema:
    """Return the paths, and the methods of each, in the order in which they are described."""
    last = sys.maxsize
    for path, methods in paths.items():
        paths[path] = dict(sorted(methods.items(), key=lambda item: item[1].get(PLACE, last)))
    return dict(sorted(paths.items(), key=lambda item: min(one.get(PLACE, last) for one in item[1].values())))


def _complete_operation(one: Schema) -> None:
    by_status: dict[str, list[KnownProblem]] = {}
    for code in one.pop(PROBLEMS, ()):
        by_status.setdefault(str(KNOWN[code].problem.status), []).append(KNOWN[code])
    headers = {status: set(names) for status, names in one.pop(HEADERS, {}).items()}
    for status, problems in sorted(by_status.items()):
        one["responses"][status] = _problem_response(problems)
        headers[status] = {name for problem in problems for name in problem.headers}
    for status, response in one["responses"].items():
        names = {"X-Request-Id", *headers.get(status, ())}
        if one.get("security") and status != "401":
            names.update(RATE_LIMIT)
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in sorted(names)}
    if "requestBody" in one:
        one["requestBody"]["required"] = not one[BODY_MAY_BE_EMPTY]
    one.pop(BODY_MAY_BE_EMPTY, None)
    one.pop(PLACE, None)


def _problem_response(problems: list[KnownProblem]) -> Schema:
    content = {"schema": _one_of(problems), "examples": {}}
    for one in problems:
        content["examples"][one.problem.code] = {"$ref": f"#/components/examples/{one.problem.code}"}
    titles = "; ".join(one.problem.title for one in problems)
    return {"description": f"{titles}.", "content": {CONTENT_TYPE: content}}


def _one_of(problems: list[KnownProblem]) -> Schema:
    references = {one.problem.code: f"#/components/schemas/{_name(one)}" for one in problems}
    if len(references) == 1:
        return {"$ref": references[problems[0].problem.code]}
    discriminator = {"propertyName": "code", "mapping": references}
    return {"oneOf": [{"$ref": reference} for reference in references.values()], "discriminator": discriminator}


def _name(one: KnownProblem) -> str:
    return f"{one.problem.__name__}Problem"


def _problem_schemas() -> dict[str, Schema]:
    """Return the common shape, and one schema for each code."""
    text = {"type": "string"}
    common = {
        "type": {"type": "string", "format": "uri", "description": "A page that says what to do."},
        "title": {**text, "description": "The kind of problem, for people."},
        "status": {"type": "integer", "description": "The status of the answer."},
        "code": {**text, "description": "The kind of problem, for programs; it never changes."},
        "detail": {**text, "description": "What is wrong with this very request."},
        "requestId": {**text, "description": "The X-Request-Id of the answer."},
    }
    base = {
        "type": "object",
        "description": "RFC 9457. Some codes add members of their own.",
        "properties": common,
        "required": list(common),
    }
    return {"Problem": base, **{_name(one): _problem_schema(one) for one in KNOWN.values()}}


def _problem_schema(one: KnownProblem) -> Schema:
    fixed = {"code": {"const": one.problem.code}, "status": {"const": one.problem.status}}
    members = {"type": "object", "properties": {**fixed, **one.members}}
    required = [name for name in one.members if name not in one.optional]
    if required:
        members["required"] = required
    return {"title": one.problem.title, "allOf": [{"$ref": "#/components/schemas/Problem"}, members]}


def _example(one: KnownProblem) -> Schema:
    return {"summary": one.problem.title, "value": problem_example(one)}


def problem_example(one: KnownProblem) -> dict[str, Any]:
    """Return an answer with this problem, as a caller may get it."""
    problem = one.problem
    return {
        "type": f"{settings.PUBLIC_URL}/docs/errors#{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": one.detail,
        "requestId": "req_0Uf7m2kQ9VxHc3NwZrTb4L",
        **one.example,
    }


@functools.cache
def document() -> bytes:
    """Return the document as JSON; it is the same until the process ends."""
    result = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return json.dumps(result, ensure_ascii=False, default=str).encode()
