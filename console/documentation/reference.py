"""The API reference: one page for each tag of the OpenAPI document, which describes new operations by itself.

See docs/decisions/0139.
"""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.safestring import SafeString

from console.documentation.code_samples import CodeSample, ExampleRequest, code_samples
from console.documentation.fields import FieldDescription, Schema, SchemaReader
from console.documentation.markdown import plain_paragraphs, render_markdown
from core.api.openapi import openapi_document

METHODS = ("get", "post", "patch", "put", "delete")
FIRST_ERROR_STATUS = 400
PLACEHOLDER = re.compile(r"\{\w+\}")
# The rest of a text that names an operation is its query or the fields of its body.
NAMED_OPERATION = re.compile(r"([A-Z]+ /v1/[^\s?]+)([?\s].*)?", re.DOTALL)


@dataclass(frozen=True)
class OperationError:
    """A problem that an operation can return."""

    status: str
    code: str
    title: str


@dataclass(frozen=True)
class OperationResponse:
    """example: as text, of any media type."""

    status: str
    description: str
    fields: tuple[FieldDescription, ...]
    example: str


@dataclass(frozen=True)
class ReferenceOperation:
    """An operation.

    text, source: its description, plain and in Markdown.
    parameters: parameters by their place, `path`, `query` and `header`.
    example: the body, as JSON text; may be empty.
    """

    id: str
    method: str
    path: str
    title: str
    text: str
    source: str
    parameters: Mapping[str, tuple[FieldDescription, ...]]
    body: tuple[FieldDescription, ...]
    example: str
    responses: tuple[OperationResponse, ...]
    errors: tuple[OperationError, ...]
    samples: tuple[CodeSample, ...]
    has_key: bool

    @property
    def description(self) -> SafeString:
        return render_markdown(self.source)


@dataclass(frozen=True, eq=False)
class ReferencePage:
    """The operations of a tag."""

    name: str
    title: str
    summary: str
    operations: tuple[ReferenceOperation, ...]

    @property
    def url(self) -> str:
        return f"/docs/api/{self.name}"


@functools.cache
def reference_pages() -> tuple[ReferencePage, ...]:
    """Return the pages in the order of the tags."""
    document = json.loads(openapi_document())
    reader = OperationReader(document)
    described = [reader.operation(*operation) for operation in _operations(document)]
    return tuple(
        ReferencePage(
            tag["name"].lower().replace(" ", "-"),
            tag["name"],
            tag["description"],
            tuple(operation for name, operation in described if name == tag["name"]),
        )
        for tag in document["tags"]
    )


def reference_page(name: str) -> ReferencePage | None:
    return next((page for page in reference_pages() if page.name == name), None)


def operation_url(text: str) -> str | None:
    """Return the URL of the operation that a text such as `PATCH /v1/domains/:id {receiving: true}` names."""
    named = NAMED_OPERATION.fullmatch(text)
    return next((url for pattern, url in _operation_patterns() if named and pattern.fullmatch(named[1])), None)


@functools.cache
def _operation_patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return a pattern of method and path of each operation with its URL, those with few parameters first."""
    operations = [(page, operation) for page in reference_pages() for operation in page.operations]
    operations.sort(key=lambda found: found[1].path.count("{"))
    return tuple(
        (re.compile(f"{operation.method} {PLACEHOLDER.sub('[^/]+', operation.path)}"), f"{page.url}#{operation.id}")
        for page, operation in operations
    )


@functools.cache
def introduction() -> str:
    """Return the introduction of the API, in Markdown."""
    return str(json.loads(openapi_document())["info"]["description"])


def _operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                yield path, method, methods[method]


@dataclass(frozen=True)
class OperationReader:
    """Reads the operations of the document."""

    document: Schema

    @property
    def schemas(self) -> SchemaReader:
        return SchemaReader(self.document["components"]["schemas"])

    def operation(self, path: str, method: str, operation: Schema) -> tuple[str, ReferenceOperation]:
        """Return an operation with its tag."""
        has_key = "security" in operation
        body: Schema = next(iter(operation.get("requestBody", {}).get("content", {}).values()), {})
        example = next(self._examples(body), None)
        url, is_stream = settings.PUBLIC_URL + self._example_path(path), _is_stream(operation)
        request = ExampleRequest(method.upper(), url, example, has_key=has_key, is_stream=is_stream)
        successes = {
            status: response for status, response in operation["responses"].items() if int(status) < FIRST_ERROR_STATUS
        }
        return operation["tags"][0], ReferenceOperation(
            id=operation["operationId"],
            method=method.upper(),
            path=path,
            title=operation["summary"],
            text="\n".join(plain_paragraphs(operation["description"])),
            source=operation["description"],
            parameters={place: self._parameters(operation, place) for place in ("path", "query", "header")},
            body=self.schemas.fields(body.get("schema", {})),
            example="" if example is None else json.dumps(example, indent=2, ensure_ascii=False),
            responses=tuple(self._response(status, response) for status, response in successes.items()),
            errors=tuple(self._errors(operation["responses"])),
            samples=code_samples(request),
            has_key=has_key,
        )

    def _parameters(self, operation: Schema, place: str) -> tuple[FieldDescription, ...]:
        described = [
            self.schemas.describe(
                parameter["name"],
                {**parameter["schema"], "description": parameter["description"]},
                is_required=parameter.get("required", False),
            )
            for parameter in operation.get("parameters", ())
            if parameter["in"] == place
        ]
        return tuple(sorted(described, key=lambda parameter: not parameter.is_required))

    def _response(self, status: str, response: Schema) -> OperationResponse:
        content = next(iter(response["content"].values()))
        example = next(self._examples(content), "")
        text = example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
        return OperationResponse(status, response["description"], self.schemas.fields(content["schema"]), text)

    def _errors(self, responses: Schema) -> Iterator[OperationError]:
        examples = self.document["components"]["examples"]
        for status, response in responses.items():
            if int(status) >= FIRST_ERROR_STATUS:
                for code in response["content"]["application/problem+json"]["examples"]:
                    yield OperationError(status, code, examples[code]["summary"])

    def _example_path(self, path: str) -> str:
        """Return a path with the ids of the examples in place of its parameters."""
        while match := PLACEHOLDER.search(path):
            path = path[: match.start()] + self._example_id(path[: match.end()]) + path[match.end() :]
        return path

    def _example_id(self, path: str) -> str:
        """Return the id in the example of the resource at a path, such as `/v1/webhooks/{webhook_id}`."""
        shape = _shape(path)
        for other, methods in self.document["paths"].items():
            if "get" in methods and _shape(other).split("/") == shape.split("/"):
                example = self._example_of(methods["get"])
                # A file has no id.
                if isinstance(example, dict):
                    return str(example["id"])
        return self._listed_id(path)

    def _listed_id(self, path: str) -> str:
        """Return the id in the example of the list, or of the other resource, that contains the resource."""
        collection, _, name = path.rpartition("/")
        owner, _, member = collection.rpartition("/")
        field = name.strip("{}")
        readable = {
            _shape(other): methods["get"] for other, methods in self.document["paths"].items() if "get" in methods
        }
        if _shape(collection) in readable:
            entry = self._example_of(readable[_shape(collection)])["data"][0]
            return str(entry[field] if field in entry else entry["id"])
        if _shape(owner) in readable:
            return str(self._example_of(readable[_shape(owner)])[member][0]["id"])
        return field.upper()

    def _example_of(self, operation: Schema) -> Any:
        content = next(iter(operation["responses"]["200"]["content"].values()))
        return next(self._examples(content))

    def _examples(self, content: Schema) -> Iterator[Any]:
        for example in content.get("examples", {}).values():
            yield example["value"]


def _shape(path: str) -> str:
    """Return a path without the names and values of its parameters."""
    return re.sub(r"\{\w+\}|\b(\w+_)?[0-9A-Za-z]{22}\b", "{}", path)


def _is_stream(operation: Schema) -> bool:
    return any("text/event-stream" in described["content"] for described in operation["responses"].values())
