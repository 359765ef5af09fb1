import json

import pytest
from django.utils import timezone

from domains.models import DkimKey, Domain
from domains.reports.addresses import Kind, report_address
from domains.services import register_domain, sending_domain_cache
from tests.conftest import Api, mail, make_account, make_key
from tests.rows import each

pytestmark = pytest.mark.django_db


def test_a_registered_domain_comes_with_its_dkim_record(api: Api):
    response = api.post("/domains", {"name": "Mail.Example.com."})
    body = response.json()
    assert response.status_code == 201
    assert body["id"].startswith("dom_")
    assert (body["name"], body["status"], body["verifiedAt"]) == ("mail.example.com", "pending", None)
    record = body["records"][0]
    assert (record["record"], record["type"]) == ("DKIM", "TXT")
    assert record["fqdn"] == f"{record['name']}.mail.example.com"
    assert record["value"].startswith("v=DKIM1; k=rsa; p=MII")


def test_all_records_to_publish_are_listed(api: Api, settings):
    settings.SPF_MECHANISMS = "include:_spf.service.example ip4:192.0.2.1"
    settings.DMARC_RUA = ["reports@service.example", "mailto:more@service.example"]
    settings.RETURN_PATH_DOMAIN = "bounce.service.example"
    body = api.post("/domains", {"name": "mail.example.com"}).json()
    own = report_address(Domain.objects.get(id=body["id"]), Kind.DMARC)
    dkim, *others = body["records"]
    assert (dkim["required"], dkim["ttl"], dkim["priority"]) == (True, 3600, None)
    assert [
        (one["record"], one["type"], one["name"], one["fqdn"], one["value"], one["required"]) for one in others
    ] == [
        ("SPF", "TXT", "@", "mail.example.com", "v=spf1 include:_spf.service.example ip4:192.0.2.1 ~all", True),
        (
            "DMARC",
            "TXT",
            "_dmarc",
            "_dmarc.mail.example.com",
            f"v=DMARC1; p=none; rua=mailto:{own},mailto:reports@service.example,mailto:more@service.example;",
            False,
        ),
        ("ReturnPath", "CNAME", "bounce", "bounce.mail.example.com", "bounce.service.example", False),
    ]
    assert {one["status"] for one in body["records"]} == {"pending"}
    assert {one[name] for one in body["records"] for name in ("found", "error", "note")} == {None}
    assert (body["warnings"], body["lastCheckedAt"]) == ([], None)


def test_without_report_addresses_the_dmarc_record_asks_for_no_reports(api: Api):
    body = api.post("/domains", {"name": "mail.example.com"}).json()
    assert body["records"][2]["value"] == "v=DMARC1; p=none;"


@each("name", ["co.uk", "github.io", "gmail.com", "GMAIL.com.", "公司.cn", "yahoo.co.jp"])
def test_public_suffixes_and_mail_providers_are_refused(api: Api, name):
    response = api.post("/domains", {"name": name})
    (error,) = response.json()["errors"]
    assert (response.status_code, error["field"], error["code"]) == (422, "name", "invalid_domain")
    assert "public" in error["detail"]


@each("name", ["example.co.uk", "me.github.io", "gmail.example.com", "notgmail.com"])
def test_names_below_public_suffixes_and_providers_are_accepted(api: Api, name):
    assert api.post("/domains", {"name": name}).status_code == 201


def test_two_workspaces_never_publish_at_one_name(api: Api, bobs_api: Api):
    fqdns = {one.post("/domains", {"name": "shared.example"}).json()["records"][0]["fqdn"] for one in (api, bobs_api)}
    assert len(fqdns) == 2


def test_a_domain_is_deleted_with_its_keys(api: Api):
    made = api.post("/domains", {"name": "b.example"}).json()
    path = f"/domains/{made['id']}"
    assert api.delete(path).json() == {"id": made["id"], "deleted": True}
    assert api.get(path).status_code == api.delete(path).status_code == 404
    assert not DkimKey.objects.filter(domain__name="b.example").exists()
    again = api.post("/domains", {"name": "b.example"}).json()
    assert again["records"][0]["value"] != made["records"][0]["value"]


def test_a_deleted_domain_no_longer_counts_for_the_plan():
    api = Api(make_key(make_account("carol", plan="free").workspace))
    first = api.post("/domains", {"name": "a.example"}).json()
    api.delete(f"/domains/{first['id']}")
    assert api.post("/domains", {"name": "b.example"}).status_code == 201


def test_nothing_is_sent_from_a_deleted_domain(api: Api, alice):
    sending_domain_cache.clear()
    api.delete(f"/domains/{alice.workspace.domains.get().id}")
    assert api.post("/emails/send", mail()).json()["code"] == "domain_not_registered"


def test_the_key_pair_has_2048_bits_and_its_private_key_is_sealed(api: Api):
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    body = api.post("/domains", {"name": "a.example"}).json()
    key = DkimKey.objects.get(domain__name="a.example")
    assert "PRIVATE" not in key.sealed_private_key
    assert "PRIVATE" not in json.dumps(body)
    private = load_pem_private_key(key.private_key(), password=None)
    assert private.key_size == 2048


def test_domains_are_listed_newest_first_and_retrieved_by_id(api: Api):
    made = api.post("/domains", {"name": "b.example"}).json()
    listed = api.get("/domains").json()
    assert [domain["name"] for domain in listed["data"]] == ["b.example", "alice.example"]
    assert (listed["total"], listed["page"], listed["limit"]) == (2, 1, 20)
    assert api.get(f"/domains/{made['id']}").json() == made


@each(
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
def test_an_invalid_domain_name_is_refused(api: Api, name):
    response = api.post("/domains", {"name": name})
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "name")


def test_an_international_name_becomes_an_a_label(api: Api):
    assert api.post("/domains", {"name": "Bücher.example"}).json()["name"] == "xn--bcher-kva.example"


def test_registering_again_is_409(api: Api):
    response = api.post("/domains", {"name": "ALICE.example"})
    assert (response.status_code, response.json()["code"]) == (409, "domain_already_exists")


def test_another_workspace_can_register_the_same_name_with_a_different_key(api: Api, bobs_api: Api):
    assert bobs_api.post("/domains", {"name": "alice.example"}).status_code == 201
    first, second = DkimKey.objects.filter(domain__name="alice.example")
    assert first.public_key != second.public_key


def test_the_plan_limits_the_number_of_domains(settings):
    settings.SENDING_DOMAIN_POLICY = "verified"
    workspace = make_account("carol", plan="free").workspace
    api = Api(make_key(workspace))
    # One that counts, and a few that are pending.
    for name in ("a.example", "b.example", "c.example", "d.example"):
        assert api.post("/domains", {"name": name}).status_code == 201
    response = api.post("/domains", {"name": "e.example"})
    assert (response.status_code, response.json()["code"]) == (403, "plan_limit_reached")
    assert (response.json()["resource"], response.json()["limit"]) == ("domains", 1)


def test_a_verified_domain_leaves_no_place_for_another_one(settings):
    settings.SENDING_DOMAIN_POLICY = "verified"
    workspace = make_account("carol", plan="free").workspace
    api = Api(make_key(workspace))
    first, second = (api.post("/domains", {"name": name}).json()["id"] for name in ("a.example", "b.example"))
    Domain.objects.filter(id=first).update(status="failed", verified_at=timezone.now())
    assert api.post("/domains", {"name": "c.example"}).json()["code"] == "plan_limit_reached"
    refused = api.post(f"/domains/{second}/verify")
    assert (refused.status_code, refused.json()["limit"]) == (403, 1)
    assert api.delete(f"/domains/{first}").status_code == 200
    assert api.post("/domains", {"name": "c.example"}).status_code == 201


def test_all_domains_count_where_registered_ones_can_send(settings):
    settings.SENDING_DOMAIN_POLICY = "registered"
    api = Api(make_key(make_account("carol", plan="free").workspace))
    assert api.post("/domains", {"name": "a.example"}).status_code == 201
    assert api.post("/domains", {"name": "b.example"}).json()["code"] == "plan_limit_reached"


def test_a_sealed_key_cannot_be_unsealed_in_another_row(alice):
    from cryptography.exceptions import InvalidTag

    one, two = (register_domain(alice.workspace, name=name).dkim_keys.get() for name in ("a.example", "b.example"))
    two.sealed_private_key = one.sealed_private_key
    with pytest.raises(InvalidTag):
        two.private_key()
