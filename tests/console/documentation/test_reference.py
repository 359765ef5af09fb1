"""The API reference: every operation, field and error is described, without loading anything from other servers."""

import json
import re
from collections.abc import Iterator
from typing import Any

from console.documentation.error_catalogue import problem_text
from console.documentation.fields import SchemaReader
from console.documentation.reference import ReferenceOperation, ReferencePage, reference_pages
from core.api.errors import all_problems, documented_problems
from core.api.openapi import openapi_document
from tests.console.documentation.test_pages import parsed, response_to

DOCUMENT = json.loads(openapi_document())
OPERATIONS = [(page, operation) for page in reference_pages() for operation in page.operations]


def properties_in(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, found in schema.get("properties", {}).items():
        yield f"{path}.{name}", found
        yield from properties_in(found, f"{path}.{name}")
    if "items" in schema:
        yield from properties_in(schema["items"], path)


def test_the_pages_load_nothing_from_other_servers():
    for path in ("/docs/", "/docs/operations", "/docs/api", "/docs/api/emails", "/docs/errors"):
        response = response_to(path)
        assert response.status_code == 200, path
        others = re.findall(r'(?:src|href)="(?:https?:)?//(?!www\.standardwebhooks\.com)', response.content.decode())
        assert others == [], path
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy, path
        assert "unsafe" not in policy, path


def test_every_field_has_a_description():
    schemas = DOCUMENT["components"]["schemas"]
    found = [field for name, schema in schemas.items() for field in properties_in(schema, name)]
    assert len(found) > 300
    missing = [path for path, schema in found if not schema.get("description", "").endswith(".")]
    assert not missing, "Add a help text to the serializer."


def test_the_reference_has_every_operation():
    documented = {operation["operationId"] for path in DOCUMENT["paths"].values() for operation in path.values()}
    assert {operation.id for _, operation in OPERATIONS} == documented


def test_an_operation_shows_its_fields_errors_and_samples_and_required_fields_first():
    assert [
        f"{operation.id}: {problem}" for page, operation in OPERATIONS for problem in problems(page, operation)
    ] == []


def problems(page: ReferencePage, operation: ReferenceOperation) -> Iterator[str]:
    section = parsed(page.url).css_first(f"section#{operation.id}")
    yield from (part for part in (operation.title, operation.path) if part not in section.text())
    names = {code.text() for code in section.css(".fields code")}
    for fields in (operation.body, *operation.parameters.values()):
        yield from {field.name for field in fields} - names
        required = [field.is_required for field in fields]
        if required != sorted(required, reverse=True):
            yield f"order of {fields}"
    codes = {link.attributes["href"].partition("#")[2] for link in section.css(".errors a")}
    yield from codes ^ {error.code for error in operation.errors}
    labels = [code.attributes["data-label"] for code in section.css(".samples .code")]
    if labels != ["curl", "JavaScript", "Python", "PHP", "Ruby", "Go"]:
        yield f"samples in {labels}"


def test_types_are_readable():
    things = {"Thing": {"type": "object", "properties": {"id": {"type": "string"}}}}
    for schema, text in (
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"], "format": "date-time"}, "timestamp or null"),
        ({"type": "array", "items": {"type": "integer"}}, "integer[]"),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "string or string[]"),
        ({"enum": ["a", "b"]}, "string"),
        ({"$ref": "#/components/schemas/Thing"}, "object"),
        ({"const": 404}, "404"),
    ):
        assert SchemaReader(things).type_of(schema) == text


def test_each_error_has_a_meaning_and_advice_and_an_entry_on_the_page():
    for problem in documented_problems().values():
        meaning, _, advice = problem_text(problem).partition("\n\n")
        assert (meaning[-1:], advice[-1:]) == (".", "."), problem.code
    page = response_to("/docs/errors").content.decode()
    assert [problem.code for problem in all_problems() if f'id="{problem.code}"' not in page] == []
