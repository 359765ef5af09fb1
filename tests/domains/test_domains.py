import json

import pytest

from domains.models import DkimKey, Domain
from domains.services import register_domain
from tests.conftest import Api, make_account, make_key

pytestmark = pytest.mark.django_db


def test_a_registered_domain_comes_with_its_dkim_record(api: Api):
    response = api.post("/domains", {"name": "Mail.Example.com."})
    body = response.json()
    assert response.status_code == 201
    assert body["id"].startswith("dom_")
    assert (body["name"], body["status"], body["verifiedAt"]) == ("mail.example.com", "pending", None)
    (record,) = body["records"]
    assert (record["record"], record["type"]) == ("DKIM", "TXT")
    assert record["fqdn"] == f"{record['name']}.mail.example.com"
    assert record["value"].startswith("v=DKIM1; k=rsa; p=MII")


def test_the_key_pair_has_2048_bits_and_its_private_half_is_sealed(api: Api):
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    body = api.post("/domains", {"name": "a.example"}).json()
    key = DkimKey.objects.get(domain__name="a.example")
    assert "PRIVATE" not in key.sealed_private_key
    assert "PRIVATE" not in json.dumps(body)
    private = load_pem_private_key(key.private_key(), password=None)
    assert private.key_size == 2048


def test_domains_are_listed_newest_first_and_looked_at_one_by_one(api: Api):
    made = api.post("/domains", {"name": "b.example"}).json()
    listed = api.get("/domains").json()
    assert [domain["name"] for domain in listed["data"]] == ["b.example", "alice.example"]
    assert (listed["total"], listed["page"], listed["limit"]) == (2, 1, 20)
    assert api.get(f"/domains/{made['id']}").json() == made


@pytest.mark.parametrize(
    ("query", "served"),
    [
        ({"limit": 1}, (1, 1, 1)),
        ({"limit": 1000}, (2, 1, 100)),
        ({"page": 3}, (0, 3, 20)),
        ({"page": 2, "limit": 1}, (1, 2, 1)),
    ],
)
def test_a_page_is_what_was_asked_for(api: Api, query, served):
    api.post("/domains", {"name": "b.example"})
    body = api.get("/domains", query).json()
    assert (len(body["data"]), body["page"], body["limit"]) == served
    assert body["total"] == 2


@pytest.mark.parametrize(
    "query", [{"limit": 0}, {"limit": -1}, {"limit": "x"}, {"page": 0}, {"page": "1.5"}, {"page": ""}]
)
def test_a_page_that_is_no_number_from_1_is_422(api: Api, query):
    response = api.get("/domains", query)
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, next(iter(query)))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "example",
        "a..b",
        "-a.example",
        "a_b.example",
        "127.0.0.1",
        "a b.example",
        "x" * 64 + ".example",
        "a.example/x",
        "*.example.com",
    ],
)
def test_what_is_no_domain_name_is_refused(api: Api, name):
    response = api.post("/domains", {"name": name})
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "name")


def test_an_international_name_becomes_an_a_label(api: Api):
    assert api.post("/domains", {"name": "Bücher.example"}).json()["name"] == "xn--bcher-kva.example"


def test_registering_again_is_409(api: Api):
    response = api.post("/domains", {"name": "ALICE.example"})
    assert (response.status_code, response.json()["code"]) == (409, "domain_already_exists")


def test_another_workspace_may_register_the_same_name_with_a_key_of_its_own(api: Api, bobs_api: Api):
    assert bobs_api.post("/domains", {"name": "alice.example"}).status_code == 201
    first, second = DkimKey.objects.filter(domain__name="alice.example")
    assert first.public_key != second.public_key


def test_a_plan_has_room_for_so_many_domains():
    workspace = make_account("carol", plan="free").workspace
    api = Api(make_key(workspace))
    assert api.post("/domains", {"name": "a.example"}).status_code == 201
    response = api.post("/domains", {"name": "b.example"})
    assert (response.status_code, response.json()["code"]) == (403, "plan_limit_reached")
    assert (response.json()["resource"], response.json()["limit"]) == ("domains", 1)


def test_another_workspaces_domain_does_not_exist(api: Api, bobs_api: Api):
    foreign = bobs_api.get(f"/domains/{Domain.objects.get(name='alice.example').id}")
    unknown = bobs_api.get("/domains/dom_" + "0" * 22)
    assert foreign.status_code == 404
    assert {**foreign.json(), "requestId": ""} == {**unknown.json(), "requestId": ""}
    assert bobs_api.get("/domains").json()["total"] == 1


def test_a_sealed_key_does_not_open_in_another_row(alice):
    from cryptography.exceptions import InvalidTag

    one, two = (register_domain(alice.workspace, name=name).dkim_keys.get() for name in ("a.example", "b.example"))
    two.sealed_private_key = one.sealed_private_key
    with pytest.raises(InvalidTag):
        two.private_key()
