"""What another workspace owns does not exist: whoever adds a path with an id, or a method to one, adds it here."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.urls import URLPattern, URLResolver, get_resolver

from suppressions.services import suppress_address
from tests.conftest import Api, mail
from workspaces.models import Usage

pytestmark = pytest.mark.django_db

# Every path with an id: its methods, the kind of the id, and a body that the owner's call would pass with.
TABLE: dict[tuple[str, str], tuple[str, Any]] = {
    ("GET", "/domains/{}"): ("domain", None),
    ("DELETE", "/domains/{}"): ("domain", None),
    ("POST", "/domains/{}/verify"): ("domain", None),
    ("POST", "/domains/{}/rotate-dkim"): ("domain", None),
    ("GET", "/templates/{}"): ("template", None),
    ("PATCH", "/templates/{}"): ("template", {"name": "Taken over", "htmlContent": "<p>Mine"}),
    ("DELETE", "/templates/{}"): ("template", None),
    ("POST", "/templates/{}/preview"): ("template", {"data": {"name": "Eve"}}),
    ("GET", "/suppressions/{}"): ("suppression", None),
    ("DELETE", "/suppressions/{}"): ("suppression", None),
    ("GET", "/webhooks/{}"): ("webhook", None),
    ("PATCH", "/webhooks/{}"): ("webhook", {"active": False}),
    ("DELETE", "/webhooks/{}"): ("webhook", None),
    ("POST", "/webhooks/{}/test"): ("webhook", None),
    ("POST", "/webhooks/{}/rotate-secret"): ("webhook", None),
    ("GET", "/webhooks/{}/deliveries"): ("webhook", None),
    ("GET", "/webhooks/{}/deliveries/{}"): ("delivery", None),
    ("POST", "/webhooks/{}/deliveries/{}/replay"): ("delivery", None),
    ("GET", "/emails/{}"): ("email", None),
    ("PATCH", "/emails/{}"): ("email", {"scheduledFor": None}),
    ("DELETE", "/emails/{}"): ("email", None),
    ("GET", "/emails/{}/events"): ("email", None),
    ("POST", "/emails/{}/resend"): ("email", None),
}
PREFIXES = {
    "email": "",
    "template": "tpl_",
    "suppression": "sup_",
    "domain": "dom_",
    "webhook": "wh_",
    "delivery": "whd_",
}
WEBHOOK = {"url": "http://127.0.0.1:9/hook", "events": ["delivered"]}
TEMPLATE = {"name": "Welcome", "subject": "Hello", "htmlContent": "<p>Hi {{name}}</p>", "alias": "welcome"}


def patterns(entries: list, prefix: str = "/") -> Iterator[tuple[str, URLPattern]]:
    for entry in entries:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from patterns(entry.url_patterns, route)
        else:
            yield route, entry


def template_of(route: str, entry: URLPattern) -> str:
    """Write a route of the router as a path with {} for each argument."""
    path = route.translate(str.maketrans("", "", "^$\\")).removesuffix("/?")
    for name in entry.pattern.regex.groupindex:
        start = path.index(f"(?P<{name}>")
        path = f"{path[:start]}{{}}{path[path.index(')', start) + 1 :]}"
    return path.removeprefix("/v1")


def methods_of(entry: URLPattern) -> set[str]:
    actions = getattr(entry.callback, "actions", None)
    view = getattr(entry.callback, "cls", None) or getattr(entry.callback, "view_class", None)
    names = actions or [name for name in view.http_method_names if hasattr(view, name)]
    return {name.upper() for name in names} - {"HEAD", "OPTIONS"}


def calls_of_v1() -> set[tuple[str, str]]:
    """Return (method, path) for everything that /v1 takes."""
    return {
        (method, template_of(route, entry))
        for route, entry in patterns(get_resolver().url_patterns)
        if route.startswith("/v1/")
        for method in methods_of(entry)
    }


def call(api: Api, method: str, path: str, body: Any) -> Any:
    acts: dict[str, Callable] = {"GET": api.get, "DELETE": api.delete}
    return acts[method](path) if method in acts else getattr(api, method.lower())(path, body)


def everything() -> dict[str, list]:
    """Return all rows that a call could have changed."""
    ours = ("emails", "templates_app", "suppressions", "domains", "webhooks", "analytics")
    models = [model for name in ours for model in apps.get_app_config(name).get_models()]
    return {model.__name__: list(model.objects.order_by("pk").values()) for model in [*models, Usage]}


@pytest.fixture
def owned(api: Api, alice) -> dict[str, str]:
    """One thing of every kind, Alice's."""
    moment = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    webhook = api.post("/webhooks", WEBHOOK).json()["id"]
    suppression, _ = suppress_address(alice.workspace, address="eve@example.com", reason="manual")
    return {
        "email": api.post("/emails/send", mail(scheduledFor=moment)).json()["id"],
        "template": api.post("/templates", TEMPLATE).json()["id"],
        "suppression": suppression.id,
        "domain": alice.workspace.domains.get().id,
        "webhook": webhook,
        "delivery": api.post(f"/webhooks/{webhook}/test").json()["id"],
    }


def filled(path: str, object_id: str, owned: dict[str, str]) -> str:
    """Put an id into the last place of a path; what it lies within is the owner's."""
    within = [owned["webhook"]] * (path.count("{}") - 1)
    return path.format(*within, object_id)


def test_every_path_with_an_id_is_in_the_table():
    assert {(method, path) for method, path in calls_of_v1() if "{}" in path} == TABLE.keys()


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize(("method", "path"), TABLE)
def test_an_owner_is_answered(api: Api, owned, method, path, slash):
    kind, body = TABLE[method, path]
    response = call(api, method, filled(path, owned[kind], owned) + slash, body)
    assert response.status_code in {200, 202}, response.content


@pytest.mark.parametrize(("method", "path"), TABLE)
def test_another_workspaces_id_is_answered_like_one_that_does_not_exist(api: Api, bobs_api: Api, owned, method, path):
    _, body = TABLE[method, path]
    before = everything()
    unknown = call(bobs_api, method, filled(path, "0" * 22, owned), body)
    expected = {**unknown.json(), "requestId": ""}
    assert (unknown.status_code, expected["code"]) == (404, "not_found")
    ids = [*owned.values(), *(f"{prefix}{'0' * 22}" for prefix in PREFIXES.values())]
    for foreign in (*ids, "nonsense", "%00", "null", "-1", "é"):
        response = call(bobs_api, method, filled(path, foreign, owned), body)
        assert response.status_code == 404, (foreign, response.content)
        assert {**response.json(), "requestId": ""} == expected
        assert response["Content-Type"] == unknown["Content-Type"]
    assert everything() == before


@pytest.mark.parametrize(("method", "path"), TABLE)
def test_an_id_of_another_kind_does_not_exist_either(api: Api, owned, method, path):
    kind, body = TABLE[method, path]
    before = everything()
    for other in owned.keys() - {kind}:
        assert call(api, method, filled(path, owned[other], owned), body).status_code == 404
        bare = owned[other].removeprefix(PREFIXES[other])
        assert call(api, method, filled(path, PREFIXES[kind] + bare, owned), body).status_code == 404
    assert everything() == before


@pytest.mark.parametrize(("method", "path"), [call for call in TABLE if call[0] in {"POST", "PATCH"}])
def test_a_malformed_body_for_a_foreign_id_tells_no_more(bobs_api: Api, owned, method, path):
    kind, _ = TABLE[method, path]
    for body in ({"nonsense": 1}, {"scheduledFor": "x"}):
        foreign = call(bobs_api, method, filled(path, owned[kind], owned), body)
        unknown = call(bobs_api, method, filled(path, PREFIXES[kind] + "0" * 22, owned), body)
        assert foreign.status_code == unknown.status_code
        assert {**foreign.json(), "requestId": ""} == {**unknown.json(), "requestId": ""}


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("name", ["template", "alias"])
def test_another_workspaces_template_cannot_be_sent(bobs_api: Api, owned, name, dry_run):
    reference = owned["template"] if name == "template" else TEMPLATE["alias"]
    before = everything()
    body = mail(templateId=reference, dryRun=dry_run, **{"from": "x@bob.example"})
    foreign = bobs_api.post("/emails/send", body)
    unknown = bobs_api.post("/emails/send", body | {"templateId": "tpl_" + "0" * 22})
    assert (foreign.status_code, foreign.json()["code"]) == (422, "template_not_found")
    assert _without(foreign.json(), reference) == _without(unknown.json(), "tpl_" + "0" * 22)
    assert everything() == before


@pytest.mark.parametrize("name", ["template", "alias"])
def test_another_workspaces_template_cannot_be_sent_in_a_batch(bobs_api: Api, owned, name):
    reference = owned["template"] if name == "template" else TEMPLATE["alias"]
    before = everything()
    body = {"from": "x@bob.example", "templateId": reference, "recipients": [{"to": "ada@example.com"}]}
    foreign = bobs_api.post("/emails/batch", body)
    unknown = bobs_api.post("/emails/batch", body | {"templateId": "nonsense"})
    assert (foreign.status_code, foreign.json()["code"]) == (422, "template_not_found")
    assert _without(foreign.json(), reference) == _without(unknown.json(), "nonsense")
    assert everything() == before


def test_another_workspaces_suppression_blocks_nobody(bobs_api: Api, owned):
    body = mail(to="eve@example.com", **{"from": "x@bob.example"})
    assert bobs_api.post("/emails/send", body).status_code == 202


def test_another_workspaces_alias_can_be_taken(bobs_api: Api, owned):
    assert bobs_api.post("/templates", TEMPLATE).status_code == 201


def _without(problem: dict, reference: str) -> dict:
    """Leave out what differs between two requests: the id of the request and the name that was asked for."""
    return {**problem, "requestId": "", "detail": problem["detail"].replace(reference, "")}
