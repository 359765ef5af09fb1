"""Objects of other workspaces return 404; add each new path or method with an id to the table."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.urls import URLPattern, URLResolver, get_resolver

from console.privacy.exports import make_exports
from core.lib.ids import new_id
from core.lib.worker.stages import Stage
from core.workspaces.models import Usage, Workspace
from emails.models import Email, QueueEntry
from receiving import content
from receiving.models import ForwardTarget, Message, ReceivedEmail
from receiving.states import NOT_READ
from suppressions.services import suppress_address
from tests.conftest import Account, Api, mail
from tests.domains.report_builders import add_report
from tests.emails.builders import send
from tests.key_kinds import DECIDING, KEY_KINDS, allowed_scopes, api_of_kind, scope_of
from tests.rows import each

pytestmark = pytest.mark.django_db

# Every path with an id: method, type of the id, and a body that is valid for the owner.
TABLE: dict[tuple[str, str], tuple[str, Any]] = {
    ("GET", "/domains/{}"): ("domain", None),
    ("PATCH", "/domains/{}"): ("domain", {"tls": "required"}),
    ("DELETE", "/domains/{}"): ("domain", None),
    ("POST", "/domains/{}/verify"): ("domain", None),
    ("POST", "/domains/{}/rotate-dkim"): ("domain", None),
    ("GET", "/domains/{}/dmarc"): ("domain", None),
    ("GET", "/domains/{}/dmarc/sources"): ("domain", None),
    ("PATCH", "/domains/{}/dmarc/sources"): ("domain", {"ip": "192.0.2.7", "label": "Taken over"}),
    ("GET", "/domains/{}/dmarc/reports"): ("domain", None),
    ("GET", "/domains/{}/dmarc/reports/{}"): ("report", None),
    ("GET", "/domains/{}/tls-reports"): ("domain", None),
    ("GET", "/streams/{}"): ("stream", None),
    ("PATCH", "/streams/{}"): ("stream", {"name": "Taken over"}),
    ("POST", "/streams/{}/archive"): ("stream", {}),
    ("POST", "/streams/{}/unarchive"): ("stream", {}),
    ("GET", "/templates/{}"): ("template", None),
    ("PATCH", "/templates/{}"): ("template", {"name": "Taken over", "htmlContent": "<p>Mine"}),
    ("DELETE", "/templates/{}"): ("template", None),
    ("POST", "/templates/{}/preview"): ("template", {"data": {"name": "Eve"}}),
    ("GET", "/suppressions/{}"): ("suppression", None),
    ("DELETE", "/suppressions/{}"): ("suppression", None),
    ("GET", "/alerts/{}"): ("alert", None),
    ("PATCH", "/alerts/{}"): ("alert", {"threshold": 50}),
    ("DELETE", "/alerts/{}"): ("alert", None),
    ("GET", "/erasures/{}"): ("erasure", None),
    ("GET", "/subject-exports/{}"): ("export", None),
    ("GET", "/subject-exports/{}/download"): ("export", None),
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
    ("GET", "/emails/{}/attachments"): ("email", None),
    ("GET", "/emails/{}/attachments/{}"): ("sent_file", None),
    ("POST", "/emails/{}/resend"): ("email", None),
    ("POST", "/emails/{}/approve"): ("email", None),
    ("POST", "/emails/{}/reject"): ("email", None),
    ("GET", "/inbound/routes/{}"): ("route", None),
    ("PATCH", "/inbound/routes/{}"): ("route", {"name": "Taken over"}),
    ("DELETE", "/inbound/routes/{}"): ("route", None),
    ("DELETE", "/inbound/blocks/{}"): ("block", None),
    ("GET", "/inbound/emails/{}"): ("received", None),
    ("DELETE", "/inbound/emails/{}"): ("received", None),
    ("GET", "/inbound/emails/{}/raw"): ("received", None),
    ("GET", "/inbound/emails/{}/attachments/{}"): ("attachment", None),
    ("POST", "/inbound/emails/{}/bypass"): ("received", None),
    ("POST", "/inbound/emails/{}/forward"): ("received", {"to": "grace@example.org"}),
    ("POST", "/inbound/emails/{}/redeliver"): ("received", None),
    ("POST", "/inbound/emails/{}/reread"): ("received", None),
}
PREFIXES = {
    "email": "",
    "sent_file": "att_",
    "stream": "",
    "template": "tpl_",
    "suppression": "sup_",
    "domain": "dom_",
    "report": "rpt_",
    "alert": "alr_",
    "erasure": "era_",
    "export": "sxp_",
    "webhook": "wh_",
    "delivery": "whd_",
    "route": "rt_",
    "block": "blk_",
    "received": "inb_",
    "attachment": "att_",
}
MALFORMED = ("nonsense", "%00", "null", "-1", "é")
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
    """Return a route as a path with {} for each argument."""
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


def calls_under(prefix: str) -> set[tuple[str, str]]:
    """Return (method, path) of every operation below a path."""
    return {
        (method, template_of(route, entry))
        for route, entry in patterns(get_resolver().url_patterns)
        if route.startswith(prefix)
        for method in methods_of(entry)
    }


def calls_of_v1() -> set[tuple[str, str]]:
    """Return (method, path) of every operation under /v1, except for the management API (tests/provisioning)."""
    return calls_under("/v1/") - calls_under("/v1/admin/")


def call(api: Api, method: str, path: str, body: Any) -> Any:
    methods: dict[str, Callable] = {"GET": api.get, "DELETE": api.delete}
    return methods[method](path) if method in methods else getattr(api, method.lower())(path, body)


def all_rows() -> dict[str, list]:
    """Return all rows that a call can change."""
    apps_with_rows = (
        "emails",
        "streams",
        "templates_app",
        "suppressions",
        "domains",
        "alerts",
        "webhooks",
        "analytics",
        "receiving",
    )
    models = [model for name in apps_with_rows for model in apps.get_app_config(name).get_models()]
    return {model.__name__: list(model.objects.order_by("pk").values()) for model in [*models, Usage]}


@pytest.fixture
def owned(api: Api, alice, settings) -> dict[str, str]:
    """One object of each type, owned by Alice."""
    settings.RECEIVING_DOMAIN = "in.demo.example"
    scheduled_for = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    webhook = api.post("/webhooks", WEBHOOK).json()["id"]
    suppression, _ = suppress_address(alice.workspace, address="eve@example.com", reason="manual")
    received = received_by(alice.workspace)
    email = send(api, scheduledFor=scheduled_for, attachments=[{"filename": "a.txt", "content": "QQ=="}])
    ForwardTarget.objects.create(workspace=alice.workspace, address="grace@example.org", confirmed_at=datetime.now(UTC))
    return {
        "email": email,
        "sent_file": api.get(f"/emails/{email}/attachments").json()["data"][0]["id"],
        "stream": api.post("/streams", {"id": "news", "name": "News"}).json()["id"],
        "template": api.post("/templates", TEMPLATE).json()["id"],
        "suppression": suppression.id,
        "domain": alice.workspace.domains.get().id,
        "report": add_report(alice.workspace.domains.get(), day=datetime.now(UTC).date()).id,
        "erasure": api.post("/erasures", {"email": "ada@example.com"}).json()["id"],
        "export": exported(api),
        "alert": api.post("/alerts", {"metric": "bounce_rate", "threshold": 4}).json()["id"],
        "webhook": webhook,
        "delivery": api.post(f"/webhooks/{webhook}/test").json()["id"],
        "route": api.post("/inbound/routes", {"name": "All", "domain": "shared", "match": "*"}).json()["id"],
        "block": api.post("/inbound/blocks", {"sender": "spam.example"}).json()["id"],
        "received": received.id,
        "attachment": received.message.attachments[0]["id"],
    }


def exported(api: Api) -> str:
    """Return the id of an export whose file is complete."""
    export_id: str = api.post("/subject-exports", {"email": "ada@example.com"}).json()["id"]
    list(make_exports())
    return export_id


def received_by(workspace: Workspace) -> ReceivedEmail:
    """Return a received email with an attachment that is blocked and has an event, so that every operation works."""
    attachment = {"id": new_id("att_"), "filename": "a.txt", "contentType": "text/plain", "size": 2, "sha256": ""}
    attachment |= {"contentId": None, "inline": False, "method": None, "start": 0, "end": 2, "encoding": "7bit"}
    message = Message.objects.create(
        content_id=content.put([b"hi"])[0], sha256=b"", size=2, envelope_from="", trace="", attachments=[attachment]
    )
    return ReceivedEmail.objects.create(
        workspace=workspace,
        message=message,
        recipient="a@in.demo.example",
        status="blocked",
        size=2,
        store_days=7,
        expires_at=datetime.now(UTC) + timedelta(days=7),
        event_id=new_id("evt_"),
    )


def make_forwardable(workspace: Workspace) -> None:
    """Let the received email be one that can be forwarded; a blocked one cannot."""
    ReceivedEmail.objects.update(status="processed", recipient=f"a@{workspace.domains.get().name}")
    Message.objects.update(envelope_from="ada@example.com")


def let_wait_for_approval() -> None:
    """Let the emails wait for a decision."""
    Email.objects.update(approval_expires_at=datetime.now(UTC) + timedelta(days=7))
    QueueEntry.objects.update(stage=Stage.UNAPPROVED, waits_for="approval")


@pytest.fixture
def alices_test_email(api: Api, alice: Account) -> str:
    """The id of an email that a test key of Alice accepted."""
    return send(api_of_kind("test", alice.workspace))


def fill_path(path: str, object_id: str, owned: dict[str, str]) -> str:
    """Insert an id as the last argument of a path; the parents are the owner's."""
    names = {"inbound": "received", "emails": "email", "domains": "domain"}
    parent = owned[names.get(path.split("/")[1], "webhook")]
    parents = [parent] * (path.count("{}") - 1)
    return path.format(*parents, object_id)


def test_every_path_with_an_id_is_in_the_table():
    assert {(method, path) for method, path in calls_of_v1() if "{}" in path} == TABLE.keys()


@each("slash", ["", "/"])
@each(("method", "path"), TABLE)
def test_an_owner_has_access(api: Api, alice, owned, method, path, slash):
    id_type, body = TABLE[method, path]
    if path.endswith("/forward"):
        make_forwardable(alice.workspace)
    if path.endswith("/reread"):
        Message.objects.update(parse_errors=[NOT_READ])
    if (method, path) in DECIDING:
        api = api_of_kind("approvals", alice.workspace)
        let_wait_for_approval()
    response = call(api, method, fill_path(path, owned[id_type], owned) + slash, body)
    assert response.status_code in {200, 202}, response


@pytest.fixture
def bobs_apis(bob: Account) -> dict[str, Api]:
    return {kind: api_of_kind(kind, bob.workspace) for kind in KEY_KINDS}


@each(("number", "method", "path"), [(number, *operation) for number, operation in enumerate(TABLE)])
def test_another_workspaces_id_is_answered_like_an_unknown_id(
    bobs_apis, owned, alices_test_email, number, method, path
):
    id_type, _ = TABLE[method, path]
    foreign = [owned[id_type], alices_test_email] if id_type == "email" else [owned[id_type]]
    # Each operation has other ones, and all with --long.
    others = other_ids(owned)[number % 6 :: 6]
    before = all_rows()
    for kind, api in bobs_apis.items():
        # Every kind of key looks up an id of another type in the same way.
        check_ids(api, kind, method, path, owned, [*foreign, *others] if kind == "full_access" else foreign)
    assert all_rows() == before


def other_ids(owned: dict[str, str]) -> list[str]:
    """Return ids of each type, existing and unknown, and texts that are no ids."""
    return [*owned.values(), *(f"{prefix}{'0' * 22}" for prefix in PREFIXES.values()), *MALFORMED]


@pytest.mark.long
@each(("method", "path"), TABLE)
def test_every_kind_of_key_answers_every_id_like_an_unknown_one(bobs_apis, owned, method, path):
    for kind, api in bobs_apis.items():
        check_ids(api, kind, method, path, owned, other_ids(owned))


def check_ids(api: Api, kind: str, method: str, path: str, owned: dict[str, str], ids: list[str]) -> None:
    body = TABLE[method, path][1]
    unknown = call(api, method, fill_path(path, "0" * 22, owned), body)
    expected = {**unknown.json(), "requestId": ""}
    is_allowed = scope_of(kind) in allowed_scopes(method, path)
    refusal = (404, "not_found") if is_allowed else (403, "insufficient_scope")
    assert (unknown.status_code, expected["code"]) == refusal, kind
    for foreign in ids:
        response = call(api, method, fill_path(path, foreign, owned), body)
        assert response.status_code == unknown.status_code, (kind, foreign, response.content)
        assert {**response.json(), "requestId": ""} == expected
        assert response["Content-Type"] == unknown["Content-Type"]


def test_lists_have_no_objects_of_another_workspace(api: Api, bobs_api: Api, owned):
    """Lists without a parameter that is required, among them all whose entries have a path in the table."""
    paths = {path for method, path in calls_of_v1() if method == "GET" and "{}" not in path}
    listed = {path.removesuffix("/{}") for _, path in TABLE if path.count("{}") == 1 and path.endswith("/{}")}

    def shows(reader: Api, path: str) -> bool:
        body = reader.get(path).getvalue().decode()
        return any(f'"{object_id}"' in body for object_id in owned.values())

    assert {path for path in listed & paths if not shows(api, path)} == set()
    assert {path for path in paths - {"/events/stream"} if shows(bobs_api, path)} == set()


# Each operation has every third other type, beginning with another one, and all of them with --long.
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
@each(("number", "method", "path"), [(number, *operation) for number, operation in enumerate(TABLE)])
def test_an_id_of_another_type_does_not_exist(api: Api, alice, owned, number, method, path, step):
    id_type, body = TABLE[method, path]
    if (method, path) in DECIDING:
        api = api_of_kind("approvals", alice.workspace)
    before = all_rows()
    for other in sorted(owned.keys() - {id_type})[number % step :: step]:
        assert call(api, method, fill_path(path, owned[other], owned), body).status_code == 404
        bare = owned[other].removeprefix(PREFIXES[other])
        assert call(api, method, fill_path(path, PREFIXES[id_type] + bare, owned), body).status_code == 404
    assert all_rows() == before


@each(("method", "path"), [call for call in TABLE if call[0] in {"POST", "PATCH"}])
def test_a_malformed_body_for_a_foreign_id_reveals_nothing(bobs_api: Api, owned, method, path):
    id_type, _ = TABLE[method, path]
    for body in ({"nonsense": 1}, {"scheduledFor": "x"}):
        foreign = call(bobs_api, method, fill_path(path, owned[id_type], owned), body)
        unknown = call(bobs_api, method, fill_path(path, PREFIXES[id_type] + "0" * 22, owned), body)
        assert foreign.status_code == unknown.status_code
        assert {**foreign.json(), "requestId": ""} == {**unknown.json(), "requestId": ""}


@each("name", ["template", "alias"])
@each(("path", "fields"), [
    ("/emails/send", mail()), ("/emails/send", mail(dryRun=True)),
    ("/emails/batch", {"recipients": [{"to": "ada@example.com"}]}),
])  # fmt: skip
def test_another_workspaces_template_cannot_be_sent(bobs_api: Api, owned, path, fields, name):
    reference = owned["template"] if name == "template" else TEMPLATE["alias"]
    before = all_rows()
    body = {**fields, "from": "x@bob.example"}
    foreign = bobs_api.post(path, {**body, "templateId": reference})
    unknown = bobs_api.post(path, {**body, "templateId": "tpl_" + "0" * 22})
    assert (foreign.status_code, foreign.json()["code"]) == (422, "template_not_found")
    assert _comparable(foreign.json(), reference) == _comparable(unknown.json(), "tpl_" + "0" * 22)
    assert all_rows() == before


def _comparable(problem: dict, reference: str) -> dict:
    """Return a problem without the parts that differ between requests: request id and template reference."""
    return {**problem, "requestId": "", "detail": problem["detail"].replace(reference, "")}
