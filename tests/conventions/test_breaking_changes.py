"""Changes of the OpenAPI document that break programs need an entry in the changelog (bin/breaking_changes.py)."""

import copy
import importlib
import json

import pytest

from tests.rows import each
from tests.stack.stack import REPOSITORY

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
NULL = {"type": "null"}
REFERENCE = {"$ref": "#/components/schemas/Part"}
# A schema that permits more, and one that permits less.
NARROWER = [
    ("type", {"type": ["string", "integer"]}, TEXT),
    ("type of numbers", NUMBER, {"type": "integer"}),
    ("any type", {}, TEXT),
    ("null", {"type": ["string", "null"]}, TEXT),
    ("null beside a reference", {"oneOf": [REFERENCE, NULL]}, REFERENCE),
    ("format", TEXT, {**TEXT, "format": "email"}),
    ("constant", {}, {"const": "a"}),
    ("maximum", {**NUMBER, "maximum": 9}, {**NUMBER, "maximum": 8}),
    ("new maximum", NUMBER, {**NUMBER, "maximum": 8}),
    ("minimum", {**NUMBER, "minimum": 1}, {**NUMBER, "minimum": 2}),
    ("new minimum", NUMBER, {**NUMBER, "minimum": 0}),
    ("exclusive maximum", {**NUMBER, "exclusiveMaximum": 9}, {**NUMBER, "exclusiveMaximum": 8}),
    ("length", {**TEXT, "maxLength": 20}, {**TEXT, "maxLength": 19}),
    ("new length", TEXT, {**TEXT, "maxLength": 19}),
    ("minimum length", TEXT, {**TEXT, "minLength": 1}),
    ("number of items", {"type": "array", "maxItems": 3}, {"type": "array", "maxItems": 2}),
    ("minimum number of items", {"type": "array"}, {"type": "array", "minItems": 1}),
    ("items", {"type": "array", "items": {"type": ["string", "null"]}}, {"type": "array", "items": TEXT}),
    ("values", {"additionalProperties": {"type": ["string", "null"]}}, {"additionalProperties": TEXT}),
    ("values of any type", {"type": "object"}, {"type": "object", "additionalProperties": TEXT}),
    ("null in an enum", {"type": ["string", "null"], "enum": ["a", None]}, {**TEXT, "enum": ["a"]}),
    ("alternative", {"anyOf": [TEXT, {"type": "array"}]}, {"anyOf": [TEXT]}),
    ("alternative with a limit", {"anyOf": [TEXT, NUMBER]}, {"anyOf": [{**TEXT, "maxLength": 9}, NUMBER]}),
    ("a part of all", {"allOf": [{"maxLength": 9}, TEXT]}, {"allOf": [{"maxLength": 8}, TEXT]}),
    (
        "a member in several parts",
        {"allOf": [{"properties": {"a": {"maxLength": 9}}}, {"properties": {"a": TEXT}}]},
        {"allOf": [{"properties": {"a": {"maxLength": 8}}}, {"properties": {"a": TEXT}}]},
    ),
    ("another keyword", TEXT, {**TEXT, "not": {"const": "a"}}),
]
SAME = [
    ("null", {"oneOf": [{**TEXT, "maxLength": 9}, NULL]}, {"type": ["string", "null"], "maxLength": 9}),
    ("null in an enum", {"oneOf": [{**TEXT, "enum": ["a"]}, NULL]}, {"type": ["string", "null"], "enum": ["a", None]}),
    ("parts", {"allOf": [{"maxLength": 9}, TEXT]}, {**TEXT, "maxLength": 9}),
    ("reference", REFERENCE, {"type": "object", "properties": {"size": NUMBER}}),
]
# Schemas of a request, and whether it accepts less.
REQUESTS = [
    ("enum value added", {"enum": ["a"]}, {"enum": ["a", "b"]}, False),
    ("enum value removed", {"enum": ["a", "b"]}, {"enum": ["a"]}, True),
    ("became an enum", TEXT, {**TEXT, "enum": ["a"]}, True),
    ("constant changed", {"const": "a"}, {"const": "b"}, True),
    ("pattern added", TEXT, {**TEXT, "pattern": "^a"}, True),
    ("pattern changed", {**TEXT, "pattern": "^a"}, {**TEXT, "pattern": "^b"}, True),
    ("pattern removed", {**TEXT, "pattern": "^a"}, TEXT, False),
    ("other members refused", {"type": "object"}, {"type": "object", "additionalProperties": False}, True),
    ("encoding removed", {**TEXT, "contentEncoding": "base64"}, TEXT, True),
    ("default changed", {**TEXT, "default": "a"}, {**TEXT, "default": "b"}, False),
]
# Schemas of a response, and whether it may contain more.
RESPONSES = [
    ("enum value added", {"enum": ["a"]}, {"enum": ["a", "b"]}, False),
    ("constant changed", {"const": "a"}, {"const": "b"}, True),
    ("constant became an enum", {"const": "a"}, {"enum": ["a", "b"]}, True),
    ("pattern changed", {**TEXT, "pattern": "^a"}, {**TEXT, "pattern": "^b"}, False),
    ("encoding added", TEXT, {**TEXT, "contentEncoding": "base64"}, True),
    ("other members possible", {"type": "object", "additionalProperties": False}, {"type": "object"}, False),
]


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script by its name. They import each other."""
    monkeypatch.syspath_prepend(REPOSITORY / "bin")
    return importlib.import_module


@pytest.fixture
def breaking_changes(script):
    return script("breaking_changes")


def document(**changes):
    """Return a document with one operation; changes replace parts of the operation."""
    item = {"$ref": "#/components/schemas/Item"}
    operation = {
        "parameters": [{"in": "query", "name": "limit", "schema": {"type": "integer", "default": 20}}],
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ItemInput"}}}},
        "responses": {
            "200": {
                "content": {"application/json": {"schema": item}, "text/csv": {}},
                "headers": {"Retry-After": {"schema": TEXT, "required": True}},
            },
            "204": {},
            "404": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/GoneProblem"}}}},
        },
    }
    members = {"id": TEXT, "name": TEXT, "parent": item}
    schemas = {
        "Item": {"type": "object", "properties": members, "required": ["id"]},
        "ItemInput": {"type": "object", "properties": {"id": TEXT, "name": TEXT}, "required": ["id"]},
        "Part": {"type": "object", "properties": {"size": NUMBER}},
        "GoneProblem": {"type": "object", "properties": {"code": {"const": "gone"}, "at": TEXT}},
        "LateProblem": {"type": "object", "properties": {"code": {"const": "late"}}},
    }
    paths = {"/v1/items/{id}": {"post": {**operation, **changes}, "get": {"responses": {}}}}
    return copy.deepcopy({"paths": paths, "components": {"schemas": schemas}})


def changed(*path, to):
    """Return the document with another value, or without it, at a path of keys."""
    result = document()
    place = result
    for key in path[:-1]:
        place = place[key]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return result


def with_name(component, schema):
    return changed("components", "schemas", component, "properties", "name", to=schema)


def texts(breaking_changes, old, new):
    return [str(change) for change in breaking_changes.breaking_changes(old, new)]


@each(("name", "wide", "narrow"), NARROWER)
def test_a_request_may_accept_more_and_a_response_contain_less(breaking_changes, name, wide, narrow):
    for component, before, after in (("ItemInput", wide, narrow), ("Item", narrow, wide)):
        places = [
            change.place[0]
            for change in breaking_changes.breaking_changes(with_name(component, before), with_name(component, after))
        ]
        assert places, (name, component)
        assert all(place.startswith((f"{component}.name", "Part")) for place in places), (name, component, places)
        assert texts(breaking_changes, with_name(component, after), with_name(component, before)) == [], (
            name,
            component,
        )


@each(("name", "one", "other"), SAME)
def test_schemas_of_the_same_meaning(breaking_changes, name, one, other):
    for component in ("Item", "ItemInput"):
        for pair in ((one, other), (other, one)):
            old, new = (with_name(component, schema) for schema in pair)
            assert texts(breaking_changes, old, new) == [], (name, component)


@each(("name", "old", "new", "breaks"), REQUESTS)
def test_values_of_requests(breaking_changes, name, old, new, breaks):
    found = texts(breaking_changes, with_name("ItemInput", old), with_name("ItemInput", new))
    assert [text.partition(":")[0] for text in found] == ["`ItemInput.name`"] * breaks, name


@each(("name", "old", "new", "breaks"), RESPONSES)
def test_values_of_responses(breaking_changes, name, old, new, breaks):
    found = texts(breaking_changes, with_name("Item", old), with_name("Item", new))
    assert [text.partition(":")[0] for text in found] == ["`Item.name`"] * breaks, name


PATH = ("paths", "/v1/items/{id}")
POST = (*PATH, "post")
SCHEMAS = ("components", "schemas")
LIMIT = {"in": "query", "name": "limit", "schema": {"type": "integer", "default": 20}}
OTHER = {"in": "query", "name": "other", "schema": TEXT}
BODY = document()["paths"]["/v1/items/{id}"]["post"]["requestBody"]
OK = (*POST, "responses", "200")
GONE = (*POST, "responses", "404", "content", "application/json", "schema")
LATE = {"$ref": "#/components/schemas/LateProblem"}


@each(
    ("path", "value", "text"),
    [
        (PATH, None, ["`GET /v1/items/:id`: was removed", "`POST /v1/items/:id`: was removed"]),
        ((*PATH, "get"), None, ["`GET /v1/items/:id`: was removed"]),
        ((*POST, "parameters"), [], ["`POST /v1/items/:id` `limit`: the query parameter was removed"]),
        (
            (*POST, "parameters"),
            [LIMIT | {"required": True}],
            ["`POST /v1/items/:id` `limit`: the query parameter is required"],
        ),
        (
            (*POST, "parameters"),
            [LIMIT, OTHER | {"required": True}],
            ["`POST /v1/items/:id` `other`: the query parameter is required"],
        ),
        (
            (*POST, "parameters", 0, "schema", "maximum"),
            50,
            ["`POST /v1/items/:id` `limit`: maximum of requests is 50 instead of unset"],
        ),
        (
            (*POST, "parameters", 0, "schema", "default"),
            10,
            ["`POST /v1/items/:id` `limit`: default of requests is 10 instead of 20"],
        ),
        ((*POST, "requestBody"), None, ["`POST /v1/items/:id`: the body of requests was removed"]),
        ((*POST, "requestBody"), BODY | {"required": True}, ["`POST /v1/items/:id`: a body of requests is required"]),
        (
            (*POST, "requestBody", "content"),
            {},
            ["`POST /v1/items/:id`: application/json was removed from requests"],
        ),
        ((*POST, "responses", "204"), None, ["`POST /v1/items/:id`: the status 204 was removed"]),
        ((*OK, "content", "text/csv"), None, ["`POST /v1/items/:id`: text/csv was removed from responses"]),
        ((*OK, "headers"), {}, ["`Retry-After`: the header was removed from responses"]),
        (
            (*OK, "headers", "Retry-After", "required"),
            False,
            ["`Retry-After`: the header became optional in responses"],
        ),
        ((*SCHEMAS, "Item", "properties", "name"), None, ["`Item.name`: was removed from responses"]),
        (
            (*SCHEMAS, "Item"),
            {"type": "object", "properties": {"name": TEXT, "parent": {"$ref": "#/components/schemas/Item"}}},
            ["`Item.id`: was removed from responses"],
        ),
        ((*SCHEMAS, "Item", "required"), [], ["`Item.id`: became optional in responses"]),
        ((*SCHEMAS, "ItemInput", "properties", "name"), None, ["`ItemInput.name`: was removed from requests"]),
        ((*SCHEMAS, "ItemInput", "required"), ["id", "name"], ["`ItemInput.name`: is required in requests"]),
        ((*SCHEMAS, "GoneProblem", "properties", "at"), None, ["`GoneProblem.at`: was removed from responses"]),
        (
            (*OK, "content", "application/json", "schema"),
            {"oneOf": [{"$ref": "#/components/schemas/Item"}, REFERENCE]},
            ["`POST /v1/items/:id`: Part was added to responses"],
        ),
        # Changes that break nothing.
        ((*PATH, "delete"), {"responses": {}}, []),
        ((*POST, "parameters"), [OTHER, LIMIT], []),
        ((*POST, "responses", "202"), {}, []),
        ((*POST, "responses", "404"), None, []),
        (GONE, LATE, []),
        (GONE, {"oneOf": [{"$ref": "#/components/schemas/GoneProblem"}, LATE]}, []),
        ((*POST, "description"), "Another text.", []),
        ((*OK, "content", "application/json", "examples"), {"other": {"value": {}}}, []),
        ((*SCHEMAS, "Item", "description"), "Another text.", []),
        (
            (*SCHEMAS, "Item", "properties"),
            {"more": TEXT, **document()["components"]["schemas"]["Item"]["properties"]},
            [],
        ),
        ((*SCHEMAS, "Item", "required"), ["name", "id"], []),
        ((*SCHEMAS, "ItemInput", "required"), [], []),
        ((*SCHEMAS, "ItemInput", "properties", "more"), TEXT, []),
    ],
)
def test_changes_of_operations_and_members(breaking_changes, path, value, text):
    assert texts(breaking_changes, document(), changed(*path, to=value)) == text


def test_a_schema_of_requests_and_responses_is_compared_in_both_directions(breaking_changes):
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}}}
    old, new = document(requestBody=body), document(requestBody=body)
    new["components"]["schemas"]["Item"]["required"] = ["name"]
    assert texts(breaking_changes, old, new) == [
        "`Item.id`: became optional in responses",
        "`Item.name`: is required in requests",
    ]


@each(
    ("changelog", "passes"),
    [
        ("## Unreleased\n\n- `Item.name` is gone:\n  `POST /v1/items/:id`\n  has no `limit`.\n\n## 1.0.0\n", True),
        ("## Unreleased\n\n- `Item.name` is gone.\n- `limit` of `POST /v1/items/:id`, too.\n", True),
        ("## Unreleased\n\n- Item.name is gone.\n- `limit` of `POST /v1/items/:id`, too.\n", False),
        ("## Unreleased\n\n- `Item.name` and `limit` are gone.\n- `POST /v1/items/:id` is new.\n", False),
        ("## Unreleased\n\n## 1.0.0\n\n- `Item.name` and `limit` of `POST /v1/items/:id` are gone.\n", False),
        ("## 1.0.0\n", False),
    ],
)
def test_an_entry_of_the_changelog_lets_a_change_pass(breaking_changes, changelog, passes):
    new = changed(*SCHEMAS, "Item", "properties", "name", to=None)
    new["paths"]["/v1/items/{id}"]["post"]["parameters"] = []
    assert (breaking_changes.unannounced_changes(document(), new, changelog) == []) is passes


def test_the_present_document_breaks_nothing_that_the_changelog_does_not_name(script):
    assert script("openapi").compare_with_release() == []


def test_an_error_names_the_change_and_the_release(script, tmp_path, monkeypatch):
    openapi = script("openapi")
    monkeypatch.setattr(openapi, "RELEASES", tmp_path)
    for release in ("1.9.0", "1.10.0"):
        (tmp_path / f"{release}.json").write_text(json.dumps(document()))
    monkeypatch.setattr(openapi, "DOCUMENT", tmp_path / "present")
    openapi.DOCUMENT.write_text(json.dumps(changed(*SCHEMAS, "Item", "properties", "name", to=None)))
    (error,) = openapi.compare_with_release()
    assert error.startswith("`Item.name`: was removed from responses (breaks programs written for 1.10.0; ")


def test_the_changes_of_a_former_release_are_found(breaking_changes):
    old, new = (
        json.loads((REPOSITORY / f"docs/openapi/{name}.json").read_text("utf-8")) for name in ("1.0.0", "1.1.0")
    )
    assert {(change.place, change.text.split()[0]) for change in breaking_changes.breaking_changes(old, new)} == {
        (("ConfiguredTemplateInput.name",), "pattern"),
        (("DomainChanges",), "minProperties"),
        (("GET /v1/events", "types"), "pattern"),
        (("GET /v1/events/stream", "types"), "pattern"),
        (("TemplateChanges.name",), "pattern"),
        (("TemplateInput.name",), "pattern"),
    }
