"""The API reference: every operation, field and error is described, without loading anything from other servers."""

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from selectolax.lexbor import LexborHTMLParser

from api.errors import all_problems, documented_problems
from api.openapi import openapi_document
from documentation.error_catalogue import problem_text
from documentation.fields import SchemaReader
from documentation.reference import reference_pages

DOCUMENT = json.loads(openapi_document())
PROBLEMS = list(documented_problems().values())
OPERATIONS = [(page, operation) for page in reference_pages() for operation in page.operations]
BY_NAME = pytest.mark.parametrize(("page", "operation"), OPERATIONS, ids=[operation.id for _, operation in OPERATIONS])


@functools.cache
def parsed(path: str) -> LexborHTMLParser:
    return LexborHTMLParser(Client().get(path).content.decode())


def properties_in(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, found in schema.get("properties", {}).items():
        yield f"{path}.{name}", found
        yield from properties_in(found, f"{path}.{name}")
    for part in [*schema.get("allOf", ()), *([schema["items"]] if "items" in schema else [])]:
        yield from properties_in(part, path)


@pytest.mark.parametrize("path", ["/docs/", "/docs/operations", "/docs/api", "/docs/api/emails", "/docs/errors"])
def test_the_pages_load_nothing_from_other_servers(path):
    response = Client().get(path)
    assert response.status_code == 200
    assert not re.search(r'(src|href)="(https?:)?//(?!www\.standardwebhooks\.com)', response.content.decode())
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
    assert "unsafe" not in policy


def test_docs_without_a_slash_redirects():
    assert Client().get("/docs")["Location"] == "/docs/"


def test_every_field_has_a_description():
    schemas = DOCUMENT["components"]["schemas"]
    found = [field for name, schema in schemas.items() for field in properties_in(schema, name)]
    assert len(found) > 300
    missing = [path for path, schema in found if not schema.get("description", "").endswith(".")]
    assert not missing, "Add a help text to the serializer."


def test_the_reference_has_every_operation():
    documented = {operation["operationId"] for path in DOCUMENT["paths"].values() for operation in path.values()}
    assert {operation.id for _, operation in OPERATIONS} == documented


@BY_NAME
def test_an_operation_shows_its_fields_errors_and_samples(page, operation):
    section = parsed(page.url).css_first(f"section#{operation.id}")
    text = section.text()
    assert operation.title in text
    assert operation.path in text
    names = {code.text() for code in section.css(".fields code")}
    assert {field.name for field in operation.body} <= names
    assert {field.name for fields in operation.parameters.values() for field in fields} <= names
    assert {link.attributes["href"].partition("#")[2] for link in section.css(".errors a")} == {
        error.code for error in operation.errors
    }
    labels = [code.attributes["data-label"] for code in section.css(".samples .code")]
    assert labels == ["curl", "JavaScript", "Python", "PHP", "Ruby"]


@BY_NAME
def test_required_fields_come_first(page, operation):
    for fields in (operation.body, *operation.parameters.values()):
        required = [field.is_required for field in fields]
        assert required == sorted(required, reverse=True)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"], "format": "date-time"}, "timestamp or null"),
        ({"type": "array", "items": {"type": "integer"}}, "integer[]"),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "string or string[]"),
        ({"enum": ["a", "b"]}, "string"),
        ({"$ref": "#/components/schemas/Thing"}, "object"),
        ({"const": 404}, "404"),
    ],
)
def test_types_are_readable(schema, text):
    things = {"Thing": {"type": "object", "properties": {"id": {"type": "string"}}}}
    assert SchemaReader(things).type_of(schema) == text


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.code)
def test_each_error_has_a_meaning_and_advice(problem):
    meaning, _, advice = problem_text(problem).partition("\n\n")
    assert meaning.endswith(".")
    assert advice.endswith(".")


def test_each_error_has_an_entry_on_the_page():
    page = Client().get("/docs/errors").content.decode()
    for problem in all_problems():
        assert f'id="{problem.code}"' in page
