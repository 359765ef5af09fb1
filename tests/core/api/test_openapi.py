"""The OpenAPI document: complete, valid, and consistent with the code that generates it."""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from jsonschema import Draft202012Validator, FormatChecker

from core.api.errors import ClientClosedRequest, MethodNotAllowed, all_problems, documented_problems
from core.api.openapi import openapi_document
from core.workspaces.api.scopes import Scope, allowed_scopes
from emails.accept.rules.emails import SendInput
from suppressions.serializers import SuppressionInput
from tests.config.test_start import start
from tests.rows import each

DOCUMENT = json.loads(openapi_document())
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = [
    (path, method, operation) for path, methods in DOCUMENT["paths"].items() for method, operation in methods.items()
]
EACH_OPERATION = each("operation", [operation for *_, operation in OPERATIONS])
NOT_GIVEN = object()
# Invalid in regular expressions of ECMAScript with the flag u, such as \".
UNKNOWN_ESCAPE = re.compile(r"(?<!\\)(\\\\)*\\[^\\^$.*+?()[\]{}|/dDsSwWbBnrtfvxu0-]")
PROJECT = (
    "core.",
    "emails.",
    "templates_app.",
    "streams.",
    "suppressions.",
    "domains.",
    "webhooks.",
    "alerts.",
    "analytics.",
    "console.provisioning.",
    "console.privacy.",
    "receiving.",
)


def routes(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        elif route.startswith("v1/"):
            yield route, pattern


def path_of(route: str) -> str:
    path = re.sub(r"\(\?P<(\w+)>[^)]*\)", lambda found: f"{{{found[1].replace('pk', 'id')}}}", route)
    return "/" + path.replace("^", "").replace("/?$", "").replace("\\.", ".")


def methods_of(callback: Any) -> set[str]:
    names = getattr(callback, "actions", None) or {
        name for name in callback.cls.http_method_names if hasattr(callback.cls, name)
    }
    return set(names) - {"head", "options"}


def resolved(value: Any) -> Any:
    """Follow a reference into the document."""
    while "$ref" in value:
        found = DOCUMENT
        for name in value["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        value = found
    return value


def schema_errors(schema: dict[str, Any], value: Any) -> list[str]:
    document = {**schema, "components": DOCUMENT["components"]}
    validator = Draft202012Validator(document, format_checker=FormatChecker())
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def examples_in(content: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield the examples of a body: media type, schema, value."""
    for media_type, body in content.items():
        for example in body["examples"].values():
            yield media_type, body["schema"], resolved(example)["value"]


@each("path", ["/v1/openapi.json", "/v1/openapi.json/"])
def test_it_is_served_without_a_key(path):
    response = Client().get(path)
    assert response.status_code == 200
    assert response["Content-Type"] == "application/json"
    assert json.loads(response.content) == DOCUMENT


def test_it_is_generated_without_warnings():
    SchemaGenerator().get_schema(request=None, public=True)
    assert not GENERATOR_STATS._warn_cache
    assert not GENERATOR_STATS._error_cache


def test_it_follows_the_openapi_3_1_schema():
    assert DOCUMENT["openapi"].startswith("3.1")
    assert (DOCUMENT["info"]["title"], DOCUMENT["info"]["version"]) == ("Postrider", "1.2")
    validate_schema(DOCUMENT)


@each("name", SCHEMAS)
def test_each_schema_is_a_json_schema(name):
    Draft202012Validator.check_schema(SCHEMAS[name])


def test_it_lists_exactly_the_existing_paths_and_methods():
    existing = {
        (path_of(route), method)
        for route, pattern in routes(get_resolver().url_patterns)
        for method in methods_of(pattern.callback)
    }
    assert {(path, method) for path, method, _ in OPERATIONS} == existing


def test_operation_ids_are_unique_names():
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name.replace("OpenApi", "Openapi")) for name in names)


@EACH_OPERATION
def test_each_operation_has_a_summary_and_a_description(operation):
    assert operation["summary"]
    assert operation["description"].endswith(".")
    (tag,) = operation["tags"]
    assert tag in [one["name"] for one in DOCUMENT["tags"]]
    assert all(parameter["description"] for parameter in operation.get("parameters", ()))
    assert not [name for name in operation if name.startswith("x-")]


@EACH_OPERATION
def test_each_response_lists_its_headers_and_has_an_example(operation):
    for status, response in operation["responses"].items():
        assert "X-Request-Id" in response["headers"]
        assert response["description"]
        assert list(examples_in(response["content"]))
        if int(status) >= 400:
            assert list(response["content"]) == ["application/problem+json"]
    if "security" in operation:
        assert {"401", "406", "429", "500", "503"} <= operation["responses"].keys()
    if "requestBody" in operation:
        assert {"400", "411", "413", "415", "422"} <= operation["responses"].keys()
        assert list(examples_in(operation["requestBody"]["content"]))


@EACH_OPERATION
def test_each_example_follows_its_schema(operation):
    bodies = [operation["requestBody"]] if "requestBody" in operation else []
    for body in (*bodies, *operation["responses"].values()):
        for media_type, schema, value in examples_in(body["content"]):
            assert schema_errors(schema, value) == [], (media_type, value)


def test_problems_have_the_common_members():
    problems = {name: schema for name, schema in SCHEMAS.items() if name.endswith("Problem")}
    common = problems["Problem"]
    for schema in problems.values():
        assert common["properties"].keys() <= schema["properties"].keys()
        assert set(common["required"]) <= set(schema["required"])


def test_an_error_matches_its_own_schema_or_that_of_later_versions():
    codes = {name: schema["properties"]["code"] for name, schema in SCHEMAS.items() if name.endswith("Problem")}
    known = {schema["const"] for schema in codes.values() if "const" in schema}
    other = codes["OtherProblem"]
    assert known == set(documented_problems())
    assert [code for code in known if schema_errors(other, code) == []] == []
    for code in ("later", "not_found_later", "not", "later_not_found", "Not_found", ""):
        assert schema_errors(other, code) == [], code
    for *_, operation in OPERATIONS:
        for status, response in operation["responses"].items():
            for content in response["content"].values():
                references = [one["$ref"] for one in content["schema"].get("oneOf", ())]
                assert (references[-1:] == ["#/components/schemas/OtherProblem"]) == (status >= "400"), (
                    status,
                    references,
                )


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects within a JSON value, at any depth."""
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects_in(child)


@each("name", SCHEMAS)
def test_generators_of_clients_understand_each_schema(name):
    for schema in objects_in(SCHEMAS[name]):
        assert "allOf" not in schema
        if isinstance(schema.get("enum", schema.get("const")), str | list):
            assert "type" in schema
        if isinstance(schema.get("pattern"), str):
            assert UNKNOWN_ESCAPE.search(schema["pattern"]) is None
    whole = SCHEMAS[name]
    if members := whole.get("properties"):
        assert not {"anyOf", "oneOf"} & whole.keys()
        assert not [member for member, schema in members.items() if "default" in schema]


@each("blank", [None, ""])
@each(
    ("serializer", "always", "texts", "lists"),
    [
        (SendInput, {"from": "a@b.example"}, ["subject", "html", "text", "templateId", "inReplyToId"], ["to"]),
        (SuppressionInput, {}, ["email"], ["emails"]),
    ],
)
def test_the_schema_requires_the_fields_that_the_service_requires(serializer, always, texts, lists, blank):
    schema = {**SCHEMAS[serializer.__name__], "components": DOCUMENT["components"]}
    matches = Draft202012Validator(schema).is_valid
    values = {name: [NOT_GIVEN, blank, "ada@example.com"] for name in texts}
    values |= {name: [NOT_GIVEN, [] if blank == "" else None, ["ada@example.com"]] for name in lists}
    accepted = 0
    for chosen in itertools.product(*values.values()):
        body = always | {name: value for name, value in zip(values, chosen, strict=True) if value is not NOT_GIVEN}
        is_valid = serializer(data=body).is_valid()
        assert matches(body) == is_valid, body
        accepted += is_valid
    assert accepted


def test_inputs_allow_no_unknown_fields():
    inputs = {name for _, _, operation in OPERATIONS for name in bodies_of(operation)}
    assert {"SendInput", "BatchInput", "TemplateInput"} <= inputs
    for name in inputs:
        assert SCHEMAS[name]["additionalProperties"] is False


def bodies_of(operation: dict[str, Any]) -> list[str]:
    content = operation.get("requestBody", {}).get("content", {})
    return [body["schema"]["$ref"].rpartition("/")[2] for body in content.values()]


FIRST_REQUESTS = """
import django; django.setup()
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from django.test import Client
together = Barrier(8)
def read(_):
    together.wait()
    response = Client(raise_request_exception=False).get("/v1/openapi.json", headers={"host": "mail.example.com"})
    return response.status_code, response.content
with ThreadPoolExecutor(8) as threads:
    answers = set(threads.map(read, range(8)))
print(len(answers), *{status for status, _ in answers})
"""


def test_the_first_requests_of_a_process_get_the_same_document():
    run = start("-c", FIRST_REQUESTS, DJANGO_SETTINGS_MODULE="config.settings")
    assert run.stdout == "1 200\n", run.stderr


ALL_ACCESS = {Scope.FULL_ACCESS, Scope.WORKSPACE_ADMIN}


def test_documented_scopes_match_the_views():
    scopes = {
        "Accepts an API key with any scope.": set(Scope),
        "one of the scopes `sending_only`, `sending_access`, `full_access`, `workspace_admin`.": {
            Scope.SENDING_ONLY,
            Scope.SENDING_ACCESS,
            *ALL_ACCESS,
        },
        "one of the scopes `sending_access`, `read_only`, `full_access`, `workspace_admin`.": {
            Scope.SENDING_ACCESS,
            Scope.READ_ONLY,
            *ALL_ACCESS,
        },
        "one of the scopes `sending_access`, `read_only`, `full_access`, `workspace_admin`, `approvals`.": {
            Scope.SENDING_ACCESS,
            Scope.READ_ONLY,
            Scope.APPROVALS,
            *ALL_ACCESS,
        },
        "the scope `approvals`.": {Scope.APPROVALS},
        "one of the scopes `read_only`, `full_access`, `workspace_admin`.": {Scope.READ_ONLY, *ALL_ACCESS},
        "one of the scopes `sending_access`, `full_access`, `workspace_admin`.": {Scope.SENDING_ACCESS, *ALL_ACCESS},
        "one of the scopes `full_access`, `workspace_admin`.": ALL_ACCESS,
    }
    patterns = {path_of(route): pattern for route, pattern in routes(get_resolver().url_patterns)}
    for path, method, operation in OPERATIONS:
        # The keys of the management API are tested in tests/provisioning.
        if "security" not in operation or path.startswith("/v1/admin/"):
            continue
        (documented,) = [scopes[text] for text in scopes if operation["description"].endswith(text)]
        callback = patterns[path].callback
        view = callback.cls()
        view.action = getattr(callback, "actions", {}).get(method) or view.action
        request = type("Request", (), {"method": method.upper()})
        assert set(allowed_scopes(view, request)) == documented, operation["operationId"]
        assert ("403" in operation["responses"]) or documented == set(Scope)


def test_every_problem_is_described_and_listed_by_an_operation():
    codes = {problem.code for problem in all_problems() if problem.__module__.startswith(PROJECT)}
    # Nobody reads the error of a client that has left.
    assert codes - {ClientClosedRequest.code} == set(documented_problems())
    listed = {
        code
        for _, _, operation in OPERATIONS
        for response in operation["responses"].values()
        for code in response["content"].get("application/problem+json", {}).get("examples", ())
    }
    # 405 belongs to paths, for methods that they do not support.
    assert codes - listed == {MethodNotAllowed.code, ClientClosedRequest.code}
