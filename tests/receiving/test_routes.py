"""Routes and blocks over the API: their fields, limits, order, and the route that decides."""

import pytest

from core.workspaces.models import AuditEntry
from receiving import services
from receiving.models import InboundRoute
from tests.conftest import Api, make_domain, make_key
from tests.receiving.builders import make_route, receive_for
from tests.rows import each

pytestmark = pytest.mark.django_db

ROUTE = {"name": "Support", "domain": "alice.example", "match": "support*"}


def test_a_route_is_created_listed_changed_and_deleted(key):
    created = key.post("/inbound/routes", ROUTE)
    assert created.status_code == 201
    route = created.json()
    assert route == {
        "id": route["id"],
        **ROUTE,
        "priority": 100,
        "action": "deliver",
        "webhookIds": [],
        "attachments": "link",
        "forwardTo": [],
        "includeRaw": False,
        "requireAuthenticated": False,
        "spamAbove": None,
        "repliesOnly": False,
        "storeDays": None,
        "active": True,
        "createdAt": route["createdAt"],
    }
    assert key.get("/inbound/routes", {"domain": "alice.example"}).json()["data"] == [route]
    assert key.get("/inbound/routes", {"domain": "shared"}).json()["data"] == []
    changed = key.patch(f"/inbound/routes/{route['id']}", {"match": "HELP", "active": False, "spamAbove": 5}).json()
    assert changed == {**route, "match": "help", "active": False, "spamAbove": 5.0}
    assert key.get(f"/inbound/routes/{route['id']}").json() == changed
    assert key.delete(f"/inbound/routes/{route['id']}").json() == {"id": route["id"], "deleted": True}
    assert key.get(f"/inbound/routes/{route['id']}").status_code == 404
    acts = AuditEntry.objects.filter(act__startswith="route").order_by("id").values_list("act", flat=True)
    assert list(acts) == ["route_created", "route_changed", "route_deleted"]


@each(("fields", "code"), [
    ({"match": "a*b*c*d*e"}, "invalid_pattern"), ({"match": "with space"}, "invalid_pattern"),
    ({"match": "a@b"}, "invalid_pattern"), ({"match": "a" * 65}, "invalid_pattern"), ({"match": ""}, "blank"),
    ({"domain": "bob.example"}, "receiving_not_active"), ({"domain": "no domain"}, "invalid_domain"),
    ({"priority": 1001}, "max_value"), ({"priority": -1}, "min_value"), ({"action": "forward"}, "invalid_choice"),
    ({"storeDays": 366}, "retention_exceeded"), ({"webhookIds": ["wh_0Uf7kXT4vB6nM8qWeRtYuI"]}, "unknown_webhook"),
    ({"webhookIds": ["x"] * 11}, "max_length"), ({"forwardTo": ["ada@example.com"]}, "forward_not_confirmed"),
    ({"forwardsTo": ["ada@example.com"]}, "unknown_field"), ({"spamAbove": "5"}, "invalid"),
])  # fmt: skip
def test_invalid_fields_are_refused(key, fields, code):
    response = key.post("/inbound/routes", {**ROUTE, **fields})
    assert response.status_code == 422
    assert [error["code"] for error in response.json()["errors"]] == [code]


def test_without_a_shared_domain_no_route_is_for_it(key, receiving, settings):
    """Nothing would ever reach it."""
    route = key.post("/inbound/routes", ROUTE).json()
    shared = key.post("/inbound/routes", {**ROUTE, "domain": "shared"}).json()
    settings.RECEIVING_DOMAIN = ""
    for response in (
        key.post("/inbound/routes", {**ROUTE, "domain": "shared"}),
        key.patch(f"/inbound/routes/{route['id']}", {"domain": "shared"}),
    ):
        assert [(error["field"], error["code"]) for error in response.json()["errors"]] == [
            ("domain", "receiving_not_active")
        ]
    assert key.patch(f"/inbound/routes/{route['id']}", {"active": False}).status_code == 200
    assert key.delete(f"/inbound/routes/{shared['id']}").status_code == 200


def test_the_largest_values_are_accepted(key):
    fields = {"match": "a*b*c*", "priority": 1000, "storeDays": 365, "name": "x" * 100, "domain": "shared"}
    assert key.post("/inbound/routes", {**ROUTE, **fields}).status_code == 201
    assert key.post("/inbound/routes", {**ROUTE, "priority": 0, "storeDays": 0, "match": "a" * 64}).status_code == 201


def test_a_workspace_has_a_hundred_routes(key, monkeypatch):
    monkeypatch.setattr(services, "MAX_ROUTES", 2)
    assert [key.post("/inbound/routes", ROUTE).status_code for _ in range(3)] == [201, 201, 403]


def test_the_first_route_decides_by_priority_literals_and_age(key, alice):
    make_route(alice.workspace, match="*")
    older = make_route(alice.workspace, match="support*")
    make_route(alice.workspace, match="support*")
    make_route(alice.workspace, match="supp*")
    rejecting = make_route(alice.workspace, match="*", priority=50, action="reject", active=False)

    def decided(address: str) -> tuple:
        found = key.post("/inbound/routes/match", {"recipient": address}).json()
        return found["route"] and found["route"]["id"], found["reply"]

    assert decided("Support+1@ALICE.example") == (older.id, "250 2.1.5 OK")
    InboundRoute.objects.filter(id=rejecting.id).update(active=True)
    assert decided("support@alice.example") == (rejecting.id, "550 5.1.1 The recipient does not accept email")
    assert decided("support@bob.example") == (None, "550 5.1.1 No such address")
    assert decided("nothing") == (None, "550 5.1.1 No such address")


def test_the_route_of_another_workspace_is_not_shown(alice, bob, receiving):
    make_route(alice.workspace)
    found = Api(make_key(bob.workspace)).post("/inbound/routes/match", {"recipient": "a@alice.example"})
    assert found.json() == {"route": None, "reply": "550 5.1.1 No such address"}


def test_senders_are_blocked_once_and_unblocked(key, alice):
    first = key.post("/inbound/blocks", {"sender": "Eve@Example.COM"})
    again = key.post("/inbound/blocks", {"sender": "eve@example.com"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert first.json()["sender"] == "eve@example.com"
    assert key.post("/inbound/blocks", {"sender": "spam.example"}).status_code == 201
    assert [block["sender"] for block in key.get("/inbound/blocks").json()["data"]] == [
        "spam.example",
        "eve@example.com",
    ]
    deleted = key.delete(f"/inbound/blocks/{first.json()['id']}").json()
    assert deleted == {"id": first.json()["id"], "sender": "eve@example.com", "deleted": True}
    for sender in ("", "not a domain", "a@", "@b.example", 5):
        assert key.post("/inbound/blocks", {"sender": sender}).status_code == 422


def test_a_workspace_has_a_thousand_blocks(key, monkeypatch):
    monkeypatch.setattr(services, "MAX_BLOCKS", 1)
    assert key.post("/inbound/blocks", {"sender": "a.example"}).status_code == 201
    assert key.post("/inbound/blocks", {"sender": "b.example"}).json()["code"] == "plan_limit_reached"
    assert key.post("/inbound/blocks", {"sender": "a.example"}).status_code == 200


def test_each_workspace_has_its_own_shared_address(key, bob, settings):
    mine = key.get("/inbound").json()
    assert mine == {
        "address": mine["address"],
        "mailHosts": ["mx.demo.example"],
        "maxMessageBytes": settings.RECEIVING_MAX_BYTES,
        "storage": {"used": 0, "limit": None},
        "messages": {"used": 0, "limit": settings.RECEIVING_DAILY_LIMIT},
    }
    local, _, domain = mine["address"].partition("@")
    assert (len(local), local.isalpha(), domain) == (12, True, "in.demo.example")
    assert key.get("/inbound").json()["address"] == mine["address"]
    assert Api(make_key(bob.workspace)).get("/inbound").json()["address"] != mine["address"]
    settings.RECEIVING_DOMAIN = ""
    assert key.get("/inbound").json()["address"] is None


def test_the_shared_address_needs_no_route_until_there_is_one(key, alice):
    address = key.get("/inbound").json()["address"]
    labelled = address.replace("@", "+orders@")
    match = {"recipient": labelled}
    assert key.post("/inbound/routes/match", match).json() == {"route": None, "reply": "250 2.1.5 OK"}
    route = make_route(alice.workspace, match="*+orders", domain="shared")
    assert key.post("/inbound/routes/match", match).json()["route"]["id"] == route.id
    unrouted = key.post("/inbound/routes/match", {"recipient": address}).json()
    assert unrouted == {"route": None, "reply": "550 5.1.1 No such address"}


def test_routes_of_a_domain_end_with_its_receiving(key, alice, receiving):
    make_route(alice.workspace)
    assert key.post("/inbound/routes/match", {"recipient": "a@alice.example"}).json()["reply"].startswith("250")
    wanted = {"enabled": False, "status": "disabled", "error": None}
    assert key.patch(f"/domains/{receiving.domain_id}", {"receiving": False}).json()["receiving"] == wanted
    assert key.post("/inbound/routes/match", {"recipient": "a@alice.example"}).json()["reply"].startswith("550")


def test_a_pending_domain_has_routes_and_receives_nothing(key, alice):
    domain = make_domain(alice.workspace, "in.alice.example")
    receive_for(domain)
    domain.receiving_domain.status = "pending"
    domain.receiving_domain.save()
    assert key.post("/inbound/routes", {**ROUTE, "domain": "in.alice.example"}).status_code == 201
    found = key.post("/inbound/routes/match", {"recipient": "support@in.alice.example"}).json()
    assert found["reply"].startswith("550")
