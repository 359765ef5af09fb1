"""The TLS policy of a sending domain."""

import pytest

from core.workspaces.models import AuditEntry
from domains.models import Domain
from domains.signing_identities import load_identities
from tests.conftest import Api
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture
def domain(api: Api, alice) -> Domain:
    return alice.workspace.domains.get()


def requires_tls(domain: Domain) -> bool:
    pair = (domain.workspace_id, domain.name)
    return load_identities([pair])[pair].requires_tls


def test_a_domain_is_opportunistic_until_it_requires_tls(api: Api, domain):
    assert api.get(f"/domains/{domain.id}").json()["tls"] == "opportunistic"
    assert not requires_tls(domain)
    response = api.patch(f"/domains/{domain.id}", {"tls": "required"})
    assert (response.status_code, response.json()["tls"]) == (200, "required")
    assert requires_tls(domain)
    assert api.patch(f"/domains/{domain.id}", {"tls": "opportunistic"}).json()["tls"] == "opportunistic"
    assert not requires_tls(domain)


def test_a_change_is_in_the_audit_log_once(api: Api, domain):
    for _ in range(2):
        api.patch(f"/domains/{domain.id}", {"tls": "required"})
    changes = AuditEntry.objects.filter(act=AuditEntry.Action.DOMAIN_CHANGED)
    assert list(changes.values_list("about", flat=True)) == ["alice.example: TLS required"]


@each("body", [{}, {"tls": "none"}, {"tls": None}, {"tls": "required", "name": "x.example"}])
def test_anything_else_is_refused(api: Api, domain, body):
    assert api.patch(f"/domains/{domain.id}", body).status_code == 422
    assert not requires_tls(domain)


def test_the_setting_requires_tls_for_every_domain(domain, settings):
    settings.DELIVERY_TLS = "required"
    assert requires_tls(domain)
