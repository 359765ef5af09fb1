"""A link that shows the DNS records of a domain without signing in (docs/decisions/0392)."""

import re
from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client

from console.dashboard.auth.throttle import Throttle
from console.dashboard.pages.domains import shared as page
from core.lib.token_bucket import RateLimit
from core.workspaces.models import AuditEntry, Workspace
from domains.models import Domain
from domains.shared_records import find_shared_domain, share_records, shared_records_token
from tests.conftest import make_domain

LINK = re.compile(r"http\S+/dashboard/records/\?token=[\w-]+")


@pytest.fixture
def domain(alice) -> Domain:
    return make_domain(alice.workspace, "mail.example.com")


def path_of(domain: Domain) -> str:
    return f"/dashboard/records/?token={shared_records_token(domain)}"


@pytest.fixture
def shared(domain) -> str:
    """The path of a link."""
    share_records(domain)
    return path_of(domain)


class TestLink:
    def test_an_owner_creates_and_revokes_it(self, owner, domain):
        form = f"/dashboard/domains/{domain.id}/share/"
        assert not LINK.search(owner.get(form).text)
        link = LINK.search(owner.post(form, follow=True).text)[0]
        assert link.endswith(path_of(domain))
        assert "Link for a colleague" in owner.get(f"/dashboard/domains/{domain.id}/").text
        assert Client().get(path_of(domain)).status_code == 200

        path = path_of(domain)
        assert not LINK.search(owner.post(form, {"end": "1"}, follow=True).text)
        assert Client().get(path).status_code == 410
        acts = AuditEntry.objects.filter(about=domain.name).order_by("id").values_list("act", flat=True)
        assert list(acts) == ["domain_records_shared", "domain_records_unshared"]

    def test_revoking_without_a_link_is_no_act(self, owner, domain):
        owner.post(f"/dashboard/domains/{domain.id}/share/", {"end": "1"})
        assert not AuditEntry.objects.filter(act="domain_records_unshared").exists()

    def test_a_new_one_replaces_the_one_before(self, domain, shared):
        Domain.objects.update(records_shared_until=F("records_shared_until") - timedelta(days=1))
        share_records(domain)
        assert Client().get(shared).status_code == 410
        assert Client().get(path_of(domain)).status_code == 200

    def test_it_ends(self, domain, shared):
        Domain.objects.update(records_shared_until=F("records_shared_until") - timedelta(days=14))
        domain.refresh_from_db()
        assert shared_records_token(domain) == ""
        assert Client().get(shared).status_code == 410

    def test_it_ends_with_the_domain_and_the_workspace(self, alice, domain, shared):
        Workspace.objects.filter(id=alice.workspace.id).update(deletes_at=domain.created_at)
        assert Client().get(shared).status_code == 410
        domain.delete()
        assert Client().get(shared).status_code == 410

    def test_it_is_of_one_domain(self, alice, domain, shared):
        other = make_domain(alice.workspace, "other.example.com")
        token = shared.partition("=")[2]
        assert find_shared_domain(token) == domain
        Domain.objects.filter(id=other.id).update(records_shared_until=domain.records_shared_until)
        assert shared_records_token(other) not in {token, ""}
        for changed in ("", "x", token[:-2], f"{token}A", token.swapcase(), "é" * 40, token * 9):
            assert Client().get("/dashboard/records/", {"token": changed}).status_code == 410, changed

    def test_another_workspace_cannot_share_it(self, owner, bob):
        foreign = make_domain(bob.workspace, "bob.example.com")
        assert owner.post(f"/dashboard/domains/{foreign.id}/share/").status_code == 404
        foreign.refresh_from_db()
        assert foreign.records_shared_until is None


class TestPage:
    def test_it_has_the_records_and_nothing_else_of_the_workspace(self, alice, domain, shared):
        shown = Client().get(shared)
        assert f"{domain.dkim_keys.get().selector}._domainkey" in shown.text
        assert "v=DKIM1; k=rsa; p=" in shown.text
        for text in (alice.workspace.name, alice.workspace.id, alice.owner.email, domain.id, "PRIVATE", 'href="/dash'):
            assert text not in shown.text, text

    def test_neither_search_engines_nor_caches_nor_other_sites_get_it(self, shared):
        for path in (shared, "/dashboard/records/?token=x"):
            headers = Client().get(path).headers
            assert headers["X-Robots-Tag"] == "noindex, nofollow"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert "no-store" in headers["Cache-Control"]
        assert 'name="robots"' in Client().get(shared).text

    def test_it_sets_no_cookie_and_changes_nothing(self, shared):
        client = Client()
        assert client.get(shared).cookies == {}
        assert not client.cookies

    def test_it_refreshes_itself(self, domain, shared):
        shown = Client().get(shared)
        headers = {"x-page-version": shown.context["refresh"].version}
        assert Client().get(shared, headers=headers).status_code == 204
        Domain.objects.update(status="verified")
        assert Client().get(shared, headers=headers).status_code == 200
        for selector in shown.context["refresh"].selectors.split(","):
            assert shown.text.count(f'id="{selector[1:]}"') == 1, selector

    def test_it_is_limited_by_network(self, shared, monkeypatch):
        monkeypatch.setattr(page, "SHARED_RECORDS", Throttle("shared-records", RateLimit(0.001, 2)))
        answers = [Client().get(shared) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert int(answers[-1].headers["Retry-After"]) > 0
