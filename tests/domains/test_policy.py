"""SENDING_DOMAIN_POLICY: the domains that a workspace can send from."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.workspaces.key_limits import NO_LIMITS
from domains.models import Domain
from domains.services import find_sending_domains, sending_domain_cache
from tests.conftest import Account, Api, mail
from tests.domains.conftest import NAME, Owner
from tests.rows import each

pytestmark = pytest.mark.django_db
ALLOWED = {"pending": False, "verified": True, "temporary_failure": True, "failed": False}


@pytest.fixture
def _only_verified(settings):
    settings.SENDING_DOMAIN_POLICY = "verified"


@each("status", ALLOWED)
def test_by_default_every_registered_domain_can_send(api: Api, status):
    Domain.objects.update(status=status)
    assert api.post("/emails/send", mail()).status_code == 202


@pytest.mark.usefixtures("_only_verified")
@each(("status", "is_allowed"), ALLOWED.items())
def test_the_verified_policy_requires_a_verified_domain(api: Api, status, is_allowed):
    Domain.objects.update(status=status)
    single = api.post("/emails/send", mail())
    template = api.post("/templates", {"name": "t", "subject": "s", "htmlContent": "<p>Hi"}).json()["id"]
    batch = {"from": "x@alice.example", "templateId": template, "recipients": [{"to": "ada@example.com"}]}
    codes = {response.status_code for response in (single, api.post("/emails/batch", batch))}
    assert codes == {202 if is_allowed else 422}


@pytest.mark.usefixtures("_only_verified")
def test_the_error_lists_the_missing_records(owner: Owner):
    owner.publish("SPF").verify()
    problem = owner.api.post("/emails/send", mail(**{"from": f"x@{NAME}"})).json()
    key = owner.record("DKIM")
    assert (problem["code"], problem["domain"]) == ("domain_not_verified", NAME)
    names = ("record", "type", "fqdn", "value", "status")
    assert problem["missingRecords"] == [{name: key[name] for name in names}]


@pytest.mark.usefixtures("_only_verified")
def test_a_domain_can_send_once_verified_and_during_a_temporary_failure(owner: Owner, dns):
    body = mail(**{"from": f"x@{NAME}"})
    assert owner.api.post("/emails/send", body).status_code == 422
    owner.publish().verify()
    assert owner.api.post("/emails/send", body).status_code == 202
    sending_domain_cache.clear()
    dns.remove(owner.record("DKIM")["fqdn"])
    assert owner.verify()["status"] == "temporary_failure"
    assert owner.api.post("/emails/send", body).status_code == 202


@pytest.mark.usefixtures("_only_verified")
def test_a_domain_verified_in_another_workspace_cannot_send(owner: Owner, bobs_api: Api):
    owner.publish().verify()
    bobs_api.post("/domains", {"name": NAME})
    assert bobs_api.post("/emails/send", mail(**{"from": f"x@{NAME}"})).json()["code"] == "domain_not_verified"


@each("policy", ["registered", "verified"])
def test_checking_a_sending_domain_takes_one_query_per_second(alice: Account, api: Api, settings, policy):
    settings.SENDING_DOMAIN_POLICY = policy
    Domain.objects.update(status="verified")
    with CaptureQueriesContext(connection) as queries:
        for _ in range(3):
            find_sending_domains(alice.workspace, ["alice.example"], NO_LIMITS)
    assert len(queries) == 1
