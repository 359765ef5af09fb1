"""Unknown query parameters: refused by lists, exports, the feed and statistics, with the one that was meant."""

import json
from typing import Any

import pytest

from core.api.openapi import openapi_document
from tests.conftest import Api
from tests.console.provisioning.conftest import management_api
from tests.emails.builders import send
from tests.rows import each

pytestmark = pytest.mark.django_db

# Operations on one object, or without a database row: they have no parameters and ignore them.
SINGLE = {
    "/v1/me",
    "/v1/openapi.json",
    "/v1/admin/workspaces/{id}/usage",
    "/v1/inbound",
    "/v1/inbound/emails/{id}/raw",
    "/v1/subject-exports/{id}/download",
}
READS: dict[str, Any] = {
    path.removeprefix("/v1"): operations["get"]
    for path, operations in json.loads(openapi_document())["paths"].items()
    if "get" in operations and path not in SINGLE and not path.endswith(("{id}", "{attachment_id}"))
}


def declared(path: str) -> list[str]:
    return [parameter["name"] for parameter in READS[path].get("parameters", ()) if parameter["in"] == "query"]


@pytest.fixture
def platform(db: None) -> Api:
    return management_api()


def real_path(path: str, api: Api, alice: Any) -> str:
    if "{webhook_id}" in path:
        body = {"url": "https://hooks.example/a", "events": ["sent"]}
        return path.replace("{webhook_id}", api.post("/webhooks", body).json()["id"])
    return path.replace("{workspace_id}", alice.workspace.id).replace("{id}", send(api) if "{id}" in path else "")


@each("path", READS)
def test_each_read_of_several_objects_refuses_a_misspelt_parameter(api: Api, platform: Api, alice, path):
    caller = platform if path.startswith("/admin/") else api
    url = real_path(path, api, alice)
    for name in [*declared(path), "nonsense"]:
        response = caller.get(url, {f"{name}_": "1"})
        (error,) = response.json()["errors"]
        assert (response.status_code, error["field"], error["code"]) == (422, f"{name}_", "unknown_parameter")
        assert error["detail"].startswith(f"Unknown parameter '{name}_'.")
        if name != "nonsense":
            assert f"Did you mean {name!r}?" in error["detail"]
    assert "422" in READS[path]["responses"]


@each("path", [path for path in READS if not path.endswith("/stream")])
def test_an_empty_parameter_is_as_if_it_were_absent(api: Api, platform: Api, alice, path):
    caller = platform if path.startswith("/admin/") else api
    url = real_path(path, api, alice)
    expected = caller.get(url).status_code
    for name in {*declared(path)} - {"page", "limit"}:
        assert (name, caller.get(url, {name: ""}).status_code) == (name, expected)


@each(
    ("path", "name", "meant"),
    [
        ("/events", "type", "types"),
        ("/events/stream", "cursor", "after"),
        ("/emails", "Status", "status"),
        ("/emails", "status[]", "status"),
        ("/emails", "per_page", "limit"),
        ("/emails/export", "start-date", "from"),
        ("/emails", "recipient", "search"),
        ("/suppressions", "email", "search"),
        ("/analytics", "until", "to"),
        ("/analytics/daily", "day", "days"),
    ],
)
def test_the_parameter_that_was_meant_is_named(api: Api, path, name, meant):
    (error,) = api.get(path, {name: "clicked"}).json()["errors"]
    assert error["detail"].endswith(f" Did you mean {meant!r}?")


def test_without_a_similar_parameter_all_are_named(api: Api):
    (error,) = api.get("/events", {"xyzzy": "1"}).json()["errors"]
    assert error["detail"] == "Unknown parameter 'xyzzy'. Use one of: after, types, limit."
    (error,) = api.get("/queue/stats", {"xyzzy": "1"}).json()["errors"]
    assert error["detail"] == "Unknown parameter 'xyzzy'."


@each(
    ("path", "query", "fields"),
    [
        ("/emails", {"Tag": "a", "limit": "0", "status": "none"}, ["Tag", "limit", "status"]),
        ("/events", {"type": "sent", "types": "none", "limit": "x"}, ["type", "types", "limit"]),
        ("/analytics", {"until": "2026", "from": "x"}, ["until", "from"]),
        ("/domains", {"name": "a", "page": "-1"}, ["name", "page"]),
    ],
)
def test_errors_of_values_are_reported_too(api: Api, path, query, fields):
    response = api.get(path, query)
    assert response.status_code == 422
    assert sorted(error["field"] for error in response.json()["errors"]) == sorted(fields)


def test_twenty_unknown_parameters_are_reported(api: Api):
    for count, reported in ((20, 20), (21, 20)):
        response = api.get("/emails", {f"x{number}": "1" for number in range(count)})
        assert len(response.json()["errors"]) == reported


def test_the_key_and_its_scope_are_checked_first(api: Api):
    assert Api().get("/emails", {"nonsense": "1"}).status_code == 401
    assert api.get("/admin/workspaces", {"nonsense": "1"}).status_code in {401, 403}


def test_a_head_request_is_checked_like_a_get(api: Api):
    assert api.client.head("/v1/emails?nonsense=1", headers=api.headers).status_code == 422
    assert api.client.head("/v1/analytics?nonsense=1", headers=api.headers).status_code == 422
    assert api.client.head("/v1/analytics?stream=main", headers=api.headers).status_code == 200


def test_other_operations_ignore_unknown_parameters(api: Api):
    for path in ("/me", f"/emails/{send(api)}"):
        assert api.get(path, {"format": "xml", "nonsense": "1"}).status_code == 200
    assert api.post("/templates?nonsense=1", {"name": "A", "subject": "S", "htmlContent": "x"}).status_code == 201
    assert api.client.options("/v1/emails?nonsense=1", headers=api.headers).status_code == 200
