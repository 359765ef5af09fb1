import re

from console.dashboard.ui.guides import GUIDES
from core.counters import counters
from emails.models import Email, Entrance
from emails.queue_stats import counter_change
from emails.states import RecipientCounter
from tests.conftest import make_domain, make_key
from tests.console.dashboard.conftest import make_email, signed_in
from tests.console.dashboard.routes import ROUTES
from tests.rows import each


def onboarding(client):
    return client.get("/dashboard/").context["onboarding"]


def done(client) -> list[str]:
    return [step.name for step in onboarding(client).steps if step.is_done]


class TestSteps:
    def test_their_state_is_read_from_the_data(self, owner, alice, settings):
        settings.DELIVERY_TRANSPORT = "smtp"
        assert done(owner) == []

        make_key(alice.workspace)
        assert done(owner) == ["key"]
        domain = make_domain(alice.workspace, "alice.example")
        assert done(owner) == ["key", "domain"]
        domain.status = "verified"
        domain.save()
        assert (done(owner), onboarding(owner).current.name) == (["key", "domain", "dns"], "curl")

    def test_set_up_leaves_the_overview_after_the_first_email(self, owner, alice):
        before = owner.get("/dashboard/").content.decode()
        make_email(alice.workspace)
        page = owner.get("/dashboard/")

        for text in ("Send your first email in four steps", "SMTP", "API details", "curl"):
            assert text in before
            assert text not in page.content.decode()
        assert "onboarding" not in page.context

    def test_set_up_does_not_come_back_when_all_emails_are_deleted(self, owner, alice):
        counters.add([counter_change(RecipientCounter.COMPLETED, alice.workspace.id)])

        assert "Send your first email in four steps" not in owner.get("/dashboard/").content.decode()

    def test_what_programs_need_is_beside_the_keys(self, owner, alice):
        make_domain(alice.workspace, "alice.example")
        assert "SMTP" not in owner.get("/dashboard/keys/").text
        make_key(alice.workspace)
        page = owner.get("/dashboard/keys/").text

        for text in (
            "hello@alice.example",
            alice.workspace.id,
            "Send an email",
            "Send a test email",
            "Base URL",
            "SMTP",
        ):
            assert text in page
        alice.workspace.api_keys.update(revoked_at="2026-11-01T00:00:00Z")
        assert "key" not in done(owner)

    def test_dns_is_needed_in_the_inbox_only_if_domains_must_be_verified(self, owner, settings):
        assert "dns" in done(owner)
        assert "Not needed here" in owner.get("/dashboard/").text
        settings.SENDING_DOMAIN_POLICY = "verified"
        assert "dns" not in done(owner)
        assert "Not needed here" not in owner.get("/dashboard/").text

    def test_the_domain_that_can_send_is_in_the_command(self, owner, alice):
        make_domain(alice.workspace, "first.example")
        second = make_domain(alice.workspace, "second.example")
        assert "@first.example" in owner.get("/dashboard/").context["curl"]

        second.status = "verified"
        second.save()

        assert "@second.example" in owner.get("/dashboard/").context["curl"]


class TestTestEmail:
    def test_is_sent_to_the_signed_in_user(self, owner, alice):
        make_domain(alice.workspace, "alice.example")
        assert owner.get("/dashboard/test-email/").status_code == 405
        assert not Email.objects.exists()

        response = owner.post("/dashboard/test-email/")

        email = Email.objects.get()
        assert response.url == f"/dashboard/emails/{email.id}/"
        assert (email.sender, email.to) == ("Postrider <test@alice.example>", [alice.owner.email])
        assert (email.workspace, email.entrance, email.tags) == (alice.workspace, Entrance.DASHBOARD, ["test"])
        assert "the workspace alice with the domain alice.example" in email.content.html

    def test_needs_a_domain_that_may_send_and_a_person_who_may_receive(self, owner, alice, settings):
        assert "is not registered in this workspace" in owner.post("/dashboard/test-email/", follow=True).text
        make_domain(alice.workspace, "alice.example")
        settings.SENDING_DOMAIN_POLICY = "verified"
        assert "is not verified" in owner.post("/dashboard/test-email/", follow=True).text
        settings.SENDING_DOMAIN_POLICY = "registered"
        alice.owner.email = "root@localhost"
        alice.owner.save()
        assert "not an email address" in owner.post("/dashboard/test-email/", follow=True).text
        assert not Email.objects.exists()

    def test_is_refused_for_a_workspace_that_cannot_send(self, owner, alice):
        make_domain(alice.workspace, "alice.example")
        for change in ({"suspended_at": "2026-11-01T00:00:00Z"}, {"suspended_at": None, "is_proven": False}):
            type(alice.workspace).objects.update(**change)
            assert owner.post("/dashboard/test-email/").url == "/dashboard/", change
        assert not Email.objects.exists()


@each("page", sorted(set(GUIDES.values())))
def test_every_guide_is_served(client, page):
    name, _, anchor = page.partition("#")
    response = client.get(f"/docs/{name}")
    assert response.status_code == 200
    assert not anchor or f'id="{anchor}"' in response.text


def test_every_section_links_to_its_guide_and_lists_the_shortcuts(owner):
    for name in ROUTES:
        if name.endswith("_changelist") or name in {"index", "usage", "bounces"}:
            page = owner.get(ROUTES[name]).text
            assert re.search(r'<a class="pr-toggle" href="/docs/[^"]*" title="Guide">', page), name
            letters = re.findall(r'data-key="(.)"', page)
            assert len(set(letters)) == len(letters) > 10, name


def test_a_member_has_no_shortcut_to_the_audit_log(alice):
    alice.workspace.memberships.update(role="member")

    assert 'data-key="a"' not in signed_in(alice.owner).get("/dashboard/").content.decode()
