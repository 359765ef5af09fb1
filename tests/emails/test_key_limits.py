"""Limits of API keys to domains and templates, under every entrance that accepts or changes emails."""

import json

import pytest

from core.workspaces.key_limits import read_limits
from emails.models import Email, EmailBatch
from tests.conftest import Account, Api, code_of, mail, make_domain, make_key
from tests.entrances import ENTRANCES, TEMPLATED, TO, in_an_hour, make_template, sendgrid_batch
from tests.interfaces.compat.conftest import Dialect
from tests.rows import each

pytestmark = pytest.mark.django_db

OWN, OTHER = "shop.example", "blog.example"


@pytest.fixture
def account(alice: Account) -> Account:
    for name in (OWN, OTHER):
        make_domain(alice.workspace, name)
    for alias in ("welcome", "receipt"):
        make_template(alice.workspace, alias)
    return alice


def limited_key(account: Account, **limits) -> str:
    return make_key(account.workspace, "sending_access", limits=read_limits(**limits))


@pytest.fixture
def domain_key(account: Account) -> str:
    return limited_key(account, domains=["Shop.Example"])


@pytest.fixture
def template_key(account: Account) -> str:
    return limited_key(account, templates=["welcome"])


@each("name", ENTRANCES)
def test_a_key_sends_from_its_domains_only(domain_key, name):
    template = "welcome" if name in TEMPLATED else None
    accepted = ENTRANCES[name](domain_key, OWN, template, TO)
    assert accepted.status_code in {200, 202}, accepted.content
    refused = ENTRANCES[name](domain_key, OTHER, template, TO)
    assert 400 <= refused.status_code < 500, refused.content
    assert "This API key can send from shop.example only, not from blog.example." in refused.content.decode()
    assert set(Email.objects.values_list("from_domain", flat=True)) <= {OWN}


@each("name", ENTRANCES)
def test_a_key_sends_with_its_templates_only(template_key, name):
    accepted = ENTRANCES[name](template_key, OWN, "welcome", TO)
    assert accepted.status_code in {200, 202}, accepted.content
    for template in ("receipt", *([] if name in TEMPLATED else [None])):
        refused = ENTRANCES[name](template_key, OWN, template, TO)
        assert 400 <= refused.status_code < 500, refused.content
        assert "with these templates only: welcome" in refused.content.decode()
    assert Email.objects.count() == (0 if name == "dry run" else 1)


def test_the_errors_name_the_field_and_the_allowed_values(domain_key, template_key):
    problem = Api(domain_key).post("/emails/send", mail(**{"from": f"hi@{OTHER}"})).json()
    assert (problem["status"], problem["code"]) == (403, "domain_not_allowed")
    assert (problem["field"], problem["domain"], problem["allowedDomains"]) == ("from", OTHER, [OWN])
    problem = Api(template_key).post("/emails/send", mail(**{"from": f"hi@{OWN}"})).json()
    assert (problem["status"], problem["code"]) == (403, "template_not_allowed")
    assert (problem["field"], problem["allowedTemplates"]) == ("templateId", ["welcome"])


def test_a_template_can_be_limited_by_its_id_and_used_by_its_alias(account):
    template = make_template(account.workspace, "invoice")
    key = limited_key(account, templates=[template.id])
    for reference in (template.id, "invoice"):
        assert ENTRANCES["send"](key, OWN, reference, TO).status_code == 202


def test_one_email_of_a_batch_with_a_foreign_domain_is_refused_alone(domain_key):
    messages = [{"From": f"hi@{name}", "To": TO, "Subject": "Hi", "TextBody": "Hi"} for name in (OWN, OTHER)]
    results = Dialect("postmark", domain_key).post("/email/batch", messages).json()
    assert [one["ErrorCode"] for one in results] == [0, 400]


@each("change", [
    lambda api, path: api.patch(path, {"scheduledFor": None}),
    lambda api, path: api.patch(path, {"scheduledFor": in_an_hour()}),
    lambda api, path: api.post(f"{path}/resend"),
    lambda api, path: api.delete(path),
])  # fmt: skip
def test_a_key_changes_only_the_emails_that_it_could_send(account, domain_key, template_key, change):
    owner = make_key(account.workspace)
    paths = {}
    for domain, template in ((OWN, "welcome"), (OTHER, "receipt")):
        sent = ENTRANCES["scheduled"](owner, domain, template, TO)
        paths[domain] = f"/emails/{sent.json()['id']}"
    before = list(Email.objects.order_by("id").values())
    for key in (domain_key, template_key):
        assert code_of(change(Api(key), paths[OTHER])) == (404, "not_found")
    assert list(Email.objects.order_by("id").values()) == before
    assert change(Api(domain_key), paths[OWN]).status_code in {200, 202}


@pytest.fixture
def own_and_other(account) -> tuple[str, str]:
    """The ids of an email that both limited keys could send, and of another one."""
    owner = make_key(account.workspace)
    sent = [ENTRANCES["send"](owner, *email, TO) for email in ((OWN, "welcome"), (OTHER, "receipt"), (OTHER, None))]
    own, other, _ = [response.json()["id"] for response in sent]
    return own, other


@pytest.mark.parametrize("limit", ["domain_key", "template_key"])
def test_a_key_reads_only_the_emails_that_it_could_send(request, own_and_other, limit):
    api, (own, other) = Api(request.getfixturevalue(limit)), own_and_other
    for query in ({}, {"status": "queued"}, {"search": "e"}, {"from": "2020-01-01"}):
        listed = api.get("/emails", query).json()
        assert ([email["id"] for email in listed["data"]], listed["total"]) == ([own], 1)
    for path in (f"/emails/{other}", f"/emails/{other}/events"):
        assert code_of(api.get(path)) == (404, "not_found")
        assert api.get(path.replace(other, own)).status_code == 200
    exported = b"".join(api.get("/emails/export").streaming_content).decode()
    assert own in exported
    assert other not in exported


@pytest.mark.parametrize("limit", ["domain_key", "template_key"])
def test_dialects_show_only_the_emails_that_a_key_could_send(request, own_and_other, limit):
    key, (own, other) = request.getfixturevalue(limit), own_and_other
    resend, postmark = Dialect("resend", key), Dialect("postmark", key)
    assert len(resend.get("/emails").json()["data"]) == 1
    assert postmark.get("/messages/outbound?count=10&offset=0").json()["TotalCount"] == 1
    for path in ("/emails/{}", "/emails/{}/attachments"):
        assert resend.get(path.format(own)).status_code == 200
        assert resend.get(path.format(other)).status_code == 404
    assert postmark.get(f"/messages/outbound/{own}/details").status_code == 200
    assert postmark.get(f"/messages/outbound/{other}/details").status_code == 404


def test_a_batch_with_a_foreign_email_is_not_found(account, domain_key):
    owner = Dialect("sendgrid", make_key(account.workspace))
    foreign, own = sendgrid_batch(make_key(account.workspace), OTHER), sendgrid_batch(domain_key, OWN)
    for batch_id in (foreign, own):
        body = {"batch_id": batch_id, "status": "pause"}
        assert owner.post("/v3/user/scheduled_sends", body).status_code == 201
    limited = Dialect("sendgrid", domain_key)
    assert [batch["batch_id"] for batch in limited.get("/v3/user/scheduled_sends").json()] == [own]
    assert limited.get(f"/v3/user/scheduled_sends/{foreign}").status_code == 404


@each("name", ENTRANCES)
def test_a_key_that_may_only_send_sends_and_reads_nothing(account, name):
    key = make_key(account.workspace, "sending_only", limits=read_limits(domains=[OWN]))
    accepted = ENTRANCES[name](key, OWN, "welcome" if name in TEMPLATED else None, TO)
    assert accepted.status_code in {200, 202}, accepted.content
    for path in ("/emails", "/emails/export", "/templates", "/domains", "/events", "/suppressions"):
        assert code_of(Api(key).get(path)) == (403, "insufficient_scope")
    assert Api(key).get("/me").json()["key"]["scope"] == "sending_only"
    assert Dialect("resend", key).get("/emails").status_code == 401
    assert Dialect("sendgrid", key).get("/v3/scopes").json() == {"scopes": ["mail.send"]}


@each("change", ["update", "cancel"])
def test_resends_changes_are_limited(account, domain_key, change):
    sent = ENTRANCES["scheduled"](make_key(account.workspace), OTHER, None, TO).json()["id"]
    calls = {"update": ("PATCH", f"/emails/{sent}", {"scheduled_at": in_an_hour()})}
    calls["cancel"] = ("POST", f"/emails/{sent}/cancel", None)
    response = Dialect("resend", domain_key).call(*calls[change])
    assert (response.status_code, response.json()["name"]) == (404, "not_found")
    assert Email.objects.get().status == "scheduled"


@each("status", ["pause", "cancel"])
def test_sendgrids_batches_are_limited(account, domain_key, status):
    batch_id = sendgrid_batch(make_key(account.workspace), OTHER)
    api, body = Dialect("sendgrid", domain_key), {"batch_id": batch_id, "status": status}
    assert api.post("/v3/user/scheduled_sends", body).status_code == 404
    assert EmailBatch.objects.get().state == "open"
    own = {**body, "batch_id": sendgrid_batch(domain_key, OWN)}
    assert api.post("/v3/user/scheduled_sends", own).status_code == 201


@each("name", ["send", "resend", "postmark", "sendgrid"])
def test_a_network_limit_holds_under_every_kind_of_endpoint(account, name):
    key = limited_key(account, networks=["203.0.113.0/24"])
    refused = ENTRANCES[name](key, OWN, None, TO)
    assert refused.status_code in {401, 403}, refused.content
    assert "can be used from 203.0.113.0/24 only; this request came from 127.0.0.1" in json.dumps(refused.json())
    assert not Email.objects.exists()
    allowed = limited_key(account, networks=["127.0.0.0/8"])
    assert ENTRANCES[name](allowed, OWN, None, TO).status_code in {200, 202}


@each("name", ["send", "resend", "postmark", "sendgrid"])
def test_a_rate_limit_holds_under_every_kind_of_endpoint(account, name):
    key = limited_key(account, requests_per_second=1)
    statuses = []
    # The bucket refills once a second: on a slow machine more than one of the first calls is allowed.
    while 429 not in statuses and len(statuses) < 200:
        statuses.append(ENTRANCES[name](key, OWN, None, TO).status_code)
    assert statuses[0] in {200, 202}
    assert statuses[-1] == 429
    assert ENTRANCES[name](limited_key(account), OWN, None, TO).status_code in {200, 202}
