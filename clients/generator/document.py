"""The OpenAPI document as operations, schemas and errors."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Optional

from generator import names

Schema = dict[str, Any]

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/openapi.json"
REFERENCE = "#/components/schemas/"
JSON = "application/json"
# The errors of later versions: the base class of errors.
OTHER_PROBLEM = "OtherProblem"
# Errors that every operation of their kind has: `Raises` does not list them.
COMMON_ERRORS = {
    "invalid_json", "not_found", "not_acceptable", "length_required", "payload_too_large", "unsupported_media_type",
    "validation_error", "rate_limit_exceeded", "too_many_concurrent_requests",
    "processor_time_exceeded", "internal_error", "service_unavailable", "overloaded",
    "missing_api_key", "invalid_api_key", "revoked_api_key", "expired_api_key", "insufficient_scope",
    "network_not_allowed", "invalid_idempotency_key", "idempotency_in_progress", "idempotency_key_reuse",
    "workspace_suspended", "workspace_deleted",
}  # fmt: skip
LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


@dataclass(frozen=True)
class Field:
    """A member of an object, or a parameter of a query.

    name: as the API spells it.
    schema: without `null`.
    """

    name: str
    schema: Schema
    text: str
    is_required: bool
    is_nullable: bool

    @property
    def is_optional(self) -> bool:
        return self.is_nullable or not self.is_required


@dataclass(frozen=True)
class Problem:
    """An error: its name without the suffix Problem, and the members that it adds."""

    name: str
    code: str
    status: int
    text: str
    members: tuple[Field, ...]


@dataclass(frozen=True)
class Operation:
    """An operation.

    path: the segments after /v1; a parameter is in braces.
    body: the name of the schema of the body.
    answers: the schema of each successful response by status.
    media_type: that of the successful responses.
    has_key: whether the header Idempotency-Key is read.
    errors: codes of errors that are particular to it.
    """

    id: str
    method: str
    path: tuple[str, ...]
    summary: str
    text: str
    query: tuple[Field, ...]
    body: Optional[str]
    body_is_required: bool
    answers: dict[str, Schema]
    media_type: str
    has_key: bool
    errors: tuple[str, ...]

    @property
    def answer(self) -> str:
        """The name of the schema of the first successful response; empty without one."""
        return reference_of(next(iter(self.answers.values()))) or ""


class Document:
    """The OpenAPI document."""

    def __init__(self, path: Path = DOCUMENT) -> None:
        self._document = json.loads(path.read_text("utf-8"))
        self.schemas: dict[str, Schema] = self._document["components"]["schemas"]
        self.operations = {operation.id: operation for operation in self._operations()}
        self.problems = {problem.code: problem for problem in self._problems()}

    def fields(self, name: str) -> tuple[Field, ...]:
        """Return the members of a schema, as the API lists them."""
        return _members(self.schemas[name])

    def item_of(self, page: str) -> Optional[str]:
        """Return the schema of the items of `{"data": […]}`, or None for another schema."""
        data = self.schemas.get(page, {}).get("properties", {}).get("data", {})
        return reference_of(data["items"]) if data.get("type") == "array" else None

    def is_page(self, name: str) -> bool:
        return {"data", "total", "page", "limit"} <= set(self.schemas.get(name, {}).get("properties", ()))

    def wrapped(self, name: str) -> Optional[Schema]:
        """Return what a schema has around others: the items of a list, or alternatives. None for an object."""
        if "properties" not in self.schemas[name]:
            return self.schemas[name]
        item = self.item_of(name)
        return {"$ref": f"{REFERENCE}{item}"} if item else None

    def merged_fields(self, names: "list[str]") -> list[Field]:
        """Return the members of several schemas; one that not all of them have is not required."""
        fields = {field.name: field for name in names for field in self.fields(name)}
        everywhere = set.intersection(*({field.name for field in self.fields(name)} for name in names))
        return [replace(one, is_required=one.is_required and one.name in everywhere) for one in fields.values()]

    def answer_schemas(self) -> list[str]:
        return [name for name in self.schemas if not name.endswith(("Input", "Changes", "Problem", "Page"))]

    def _operations(self) -> "list[Operation]":
        return [
            self._operation(method, path, operation)
            for path, methods in self._document["paths"].items()
            for method, operation in methods.items()
        ]

    def _operation(self, method: str, path: str, operation: Schema) -> Operation:
        parameters = operation.get("parameters", ())
        body = operation.get("requestBody", {})
        successes = {status: one for status, one in operation["responses"].items() if status < "300"}
        media_type = next(iter(next(iter(successes.values()))["content"]))
        answers = {status: one["content"][media_type].get("schema", {}) for status, one in successes.items()}
        return Operation(
            id=operation["operationId"],
            method=method.upper(),
            path=tuple(path.split("/")[2:]),
            summary=operation["summary"],
            text=_plain(operation["description"].rpartition("\n\n")[0] or operation["description"]),
            query=tuple(_field(one["name"], one, one["schema"]) for one in parameters if one["in"] == "query"),
            body=reference_of(body["content"][JSON]["schema"]) if body else None,
            body_is_required=bool(body.get("required")),
            answers=answers,
            media_type=media_type,
            has_key=any(one["name"] == "Idempotency-Key" for one in parameters),
            errors=tuple(sorted(self._codes_of(operation) - COMMON_ERRORS)),
        )

    def _codes_of(self, operation: Schema) -> set[str]:
        schemas = [
            content["schema"]
            for status, response in operation["responses"].items()
            for content in response["content"].values()
            if status >= "400"
        ]
        names = [reference_of(one) for schema in schemas for one in schema.get("oneOf", [schema])]
        return {self.schemas[name or ""]["properties"]["code"]["const"] for name in names if name != OTHER_PROBLEM}

    def own_members(self, problem: "Problem") -> "list[Field]":
        """Return the members of an error that the class above its own does not have."""
        base = names.ERROR_BASES.get(problem.code)
        inherited = {member.name for one in self.problems.values() if one.name == base for member in one.members}
        return [member for member in problem.members if member.name not in inherited]

    def _problems(self) -> "list[Problem]":
        common = self.schemas["Problem"]["properties"]
        problems = []
        for name, schema in self.schemas.items():
            if name.endswith("Problem") and name not in ("Problem", OTHER_PROBLEM):
                code, status = (schema["properties"][member]["const"] for member in ("code", "status"))
                members = tuple(field for field in _members(schema) if field.name not in common)
                problems.append(Problem(name[: -len("Problem")], code, status, _plain(schema["description"]), members))
        return problems


def without_sentences(text: str, fields: "tuple[str, ...]") -> str:
    """Return a text without the sentences that name one of the fields."""
    sentences = re.split(r"(?<=\.) (?=[A-Z`])", text)
    return " ".join(one for one in sentences if not any(f"`{name}`" in one for name in fields))


def reference_of(schema: Schema) -> Optional[str]:
    """Return the name of the schema that a schema refers to."""
    return schema["$ref"][len(REFERENCE) :] if "$ref" in schema else None


def _members(schema: Schema) -> tuple[Field, ...]:
    required = schema.get("required", ())
    return tuple(
        _field(name, {**member, "required": name in required}, member) for name, member in schema["properties"].items()
    )


def _field(name: str, described: Schema, schema: Schema) -> Field:
    kind, is_nullable = _without_null(schema)
    return Field(name, kind, _plain(described.get("description", "")), described.get("required") is True, is_nullable)


def _without_null(schema: Schema) -> tuple[Schema, bool]:
    """Return a schema without the type null, and whether it had it."""
    for keyword in ("oneOf", "anyOf"):
        others = [one for one in schema.get(keyword, ()) if one != {"type": "null"}]
        if keyword in schema and len(others) < len(schema[keyword]):
            return (others[0] if len(others) == 1 else {**schema, keyword: others}), True
    types = schema.get("type")
    if isinstance(types, list):
        (kind,) = [one for one in types if one != "null"]
        values = {"enum": [one for one in schema["enum"] if one is not None]} if "enum" in schema else {}
        return {**schema, "type": kind, **values}, True
    return schema, False


def _plain(text: str) -> str:
    """Return a text without links, which refer to pages of the service."""
    return LINK.sub(r"\1", text)
