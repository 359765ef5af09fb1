from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.workspaces.services import issue_api_key
from streams.models import Stream
from templates_app.models import Template
from tests.conftest import make_domain
from tests.console.dashboard.conftest import make_email, signed_in
from tests.console.dashboard.scenario import add_member, make_template
from webhooks.services import create_webhook


def found(client, text: str = "") -> dict[str, str]:
    """Return the entries for a text: URLs by title."""
    groups = client.get("/dashboard/palette/", {"q": text}).context["groups"]
    return {entry.title: entry.url for group in groups for entry in group.entries}


class TestEmails:
    def test_are_found_by_id(self, owner, alice):
        email = make_email(alice.workspace, subject="Receipt")

        assert next(iter(found(owner, f" {email.id} ").items())) == ("Receipt", f"/dashboard/emails/{email.id}/")

    def test_of_other_workspaces_are_not(self, owner, bob):
        email = make_email(bob.workspace, subject="Foreign")

        assert "Foreign" not in found(owner, email.id)

    def test_an_address_leads_to_its_recipient_first(self, owner, alice):
        entries = list(found(owner, "Ada@Example.com").items())

        assert entries[0] == ("Ada@example.com", "/dashboard/emails/recipient/?address=Ada%40example.com")
        assert entries[1] == ("Search emails for “Ada@Example.com”", "/dashboard/emails/?search=Ada%40Example.com")

    def test_are_not_searched_by_text(self, owner, alice):
        make_email(alice.workspace, subject="Receipt")
        with CaptureQueriesContext(connection) as queries:
            entries = found(owner, "receipt")

        assert entries["Search emails for “receipt”"] == "/dashboard/emails/?search=receipt"
        assert not [query for query in queries if "search_text LIKE" in query["sql"]]


class TestObjects:
    def test_are_found_by_a_part_of_their_name(self, owner, alice):
        template = make_template(alice.workspace, "Welcome aboard", "Hi", "<p>Hi</p>")
        Template.objects.update(alias="greeting")
        stream = Stream.objects.create(workspace=alice.workspace, slug="weekly", name="The news")
        domain = make_domain(alice.workspace, "shop.example")
        key, _ = issue_api_key(alice.workspace, name="Checkout server", scope="send")
        webhook, _ = create_webhook(alice.workspace, url="https://hooks.example.com/in", events=["delivered"])
        for text, title, url in (
            ("come ab", template.name, f"/dashboard/templates/{template.id}/"),
            ("GREET", template.name, f"/dashboard/templates/{template.id}/"),
            ("eekl", stream.name, f"/dashboard/streams/{stream.id}/"),
            (domain.name[2:8], domain.name, f"/dashboard/domains/{domain.id}/"),
            ("checkout", key.name, f"/dashboard/keys/{key.id}/"),
            ("hooks.ex", webhook.url, f"/dashboard/webhooks/{webhook.id}/"),
        ):
            assert found(owner, text).get(title) == url, text
            assert owner.get(url).status_code == 200, url

    def test_of_other_workspaces_are_not(self, owner, bob):
        make_template(bob.workspace, "Welcome aboard", "Hi", "<p>Hi</p>")
        assert "Welcome aboard" not in found(owner, "welcome")

    def test_one_letter_finds_none(self, owner, alice):
        make_template(alice.workspace, "Welcome aboard", "Hi", "<p>Hi</p>")
        assert "Welcome aboard" not in found(owner, "w")


def test_a_part_of_an_address_leads_to_its_recipient(owner, alice):
    address = "ada.lovelace@example.com"
    make_email(alice.workspace, to=[f"Ada <{address}>"], search_text=f"ada <{address}>\nhello")
    for text in ("lovelace@", "@example.c", "ADA.LOVELACE@EX"):
        assert found(owner, text).get(address) == "/dashboard/emails/recipient/?address=ada.lovelace%40example.com", (
            text
        )
    assert address not in found(owner, "lovelace")


def test_the_content_of_the_documentation_is_found_if_no_title_is(owner):
    entries = found(owner, "rotate signing secret")
    assert any(url.startswith("/docs/") for url in entries.values())


class TestPages:
    def test_are_found_by_the_beginning_of_words(self, owner):
        for text, title, url in (
            ("dom", "Domains", "/dashboard/domains/"),
            ("API k", "API keys", "/dashboard/keys/"),
            ("sec", "Security", "/dashboard/security/"),
            ("invite", "Invite a member", "/dashboard/members/invite/"),
            ("webh", "Webhooks", "/docs/webhooks"),
        ):
            groups = owner.get("/dashboard/palette/", {"q": text}).context["groups"]
            assert (title, url) in [(entry.title, entry.url) for group in groups for entry in group.entries], text

    def test_are_all_listed_without_a_text_and_each_leads_to_a_page(self, owner):
        entries = found(owner)

        assert {"Overview", "Audit log", "New template"} <= entries.keys()
        assert not [url for url in entries.values() if url.startswith("/docs")]
        assert [url for url in entries.values() if owner.get(url).status_code != 200] == []

    def test_of_owners_are_not_shown_to_members(self, alice):
        member = signed_in(add_member(alice.workspace).user)

        assert "Audit log" not in found(member)


def test_any_text_is_escaped_and_a_visitor_gets_no_entries(owner, client):
    shown = owner.get("/dashboard/palette/", {"q": "<img src=x>" + "x" * 500}).text
    assert ("&lt;img" in shown, "<img" in shown) == (True, False)
    assert client.get("/dashboard/palette/?q=ada").status_code == 302
    page = owner.get("/dashboard/domains/").text
    assert '<dialog id="palette"' in page
    assert 'href="/dashboard/emails/#search" data-palette' in page
