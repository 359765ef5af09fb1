"""From which domains a workspace may send: SENDING_DOMAIN_POLICY."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from domains.models import Domain
from domains.services import check_sending_domain, registered
from tests.conftest import Account, Api, mail
from tests.domains.conftest import NAME, Owner

pytestmark = pytest.mark.django_db
ALLOWED = {"pending": False, "verified": True, "temporary_failure": True, "failed": False}


@pytest.fixture
def _only_verified(settings):
    settings.SENDING_DOMAIN_POLICY = "verified"


@pytest.mark.parametrize("status", ALLOWED)
def test_by_the_letter_every_registered_domain_may_send(api: Api, status):
    Domain.objects.update(status=status)
    assert api.post("/emails/send", mail()).status_code == 202


@pytest.mark.usefixtures("_only_verified")
@pytest.mark.parametrize(("status", "is_allowed"), ALLOWED.items())
def test_by_the_strict_policy_only_a_proven_domain_may(api: Api, status, is_allowed):
    Domain.objects.update(status=status)
    single = api.post("/emails/send", mail())
    template = api.post("/templates", {"name": "t", "subject": "s", "htmlContent": "<p>Hi"}).json()["id"]
    batch = {"from": "x@alice.example", "templateId": template, "recipients": [{"to": "ada@example.com"}]}
    codes = {response.status_code for response in (single, api.post("/emails/batch", batch))}
    assert codes == {202 if is_allowed else 422}


@pytest.mark.usefixtures("_only_verified")
def test_the_refusal_names_the_records_that_are_missing(owner: Owner):
    owner.publish("SPF").verify()
    problem = owner.api.post("/emails/send", mail(**{"from": f"x@{NAME}"})).json()
    key = owner.record("DKIM")
    assert (problem["code"], problem["domain"]) == ("domain_not_verified", NAME)
    names = ("record", "type", "fqdn", "value", "status")
    assert problem["missingRecords"] == [{name: key[name] for name in names}]


@pytest.mark.usefixtures("_only_verified")
def test_a_domain_sends_as_soon_as_it_is_verified_and_through_72_hours_of_trouble(owner: Owner, dns):
    body = mail(**{"from": f"x@{NAME}"})
    assert owner.api.post("/emails/send", body).status_code == 422
    owner.publish().verify()
    assert owner.api.post("/emails/send", body).status_code == 202
    registered.clear()
    dns.remove(owner.record("DKIM")["fqdn"])
    assert owner.verify()["status"] == "temporary_failure"
    assert owner.api.post("/emails/send", body).status_code == 202


@pytest.mark.usefixtures("_only_verified")
def test_a_domain_proven_elsewhere_may_not_send_here(owner: Owner, bobs_api: Api):
    owner.publish().verify()
    bobs_api.post("/domains", {"name": NAME})
    assert bobs_api.post("/emails/send", mail(**{"from": f"x@{NAME}"})).json()["code"] == "domain_not_verified"


@pytest.mark.usefixtures("_only_verified")
@pytest.mark.parametrize("sender", ["x@sub.alice.example", "x@example", "x@alice.example.evil.example"])
def test_only_the_very_domain_counts(api: Api, sender):
    Domain.objects.update(status="verified")
    problem = api.post("/emails/send", mail(**{"from": sender})).json()
    assert problem["code"] in {"domain_not_registered", "validation_error"}


@pytest.mark.parametrize("policy", ["registered", "verified"])
def test_the_check_of_a_send_is_one_query_a_second(alice: Account, api: Api, settings, policy):
    settings.SENDING_DOMAIN_POLICY = policy
    Domain.objects.update(status="verified")
    with CaptureQueriesContext(connection) as queries:
        for _ in range(3):
            check_sending_domain(alice.workspace, name="alice.example")
    assert len(queries) == 1
