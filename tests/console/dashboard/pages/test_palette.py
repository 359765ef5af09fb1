from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.workspaces.models import Membership
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
        posted = {entries[title] for title in ("Send a test email", "Sign out")}
        assert [url for url in {*entries.values()} - posted if owner.get(url).status_code != 200] == []

    def test_of_owners_are_not_shown_to_members(self, alice):
        member = signed_in(add_member(alice.workspace).user)

        assert not {"Audit log", "Invite a member"} & found(member).keys()


class TestActions:
    def test_are_found_by_the_words_that_people_use(self, owner):
        for text, title in (
            ("create key", "Create an API key"),
            ("new domain", "Add a domain"),
            ("add template", "New template"),
            ("block addr", "Suppress addresses"),
            ("create member", "Invite a member"),
            ("test email", "Send a test email"),
            ("recipient rules", "Set recipient rules"),
            ("block sender", "Block a sender"),
        ):
            assert next(iter(found(owner, text))) == title, text

    def test_come_first_without_a_text_and_before_the_search_with_one(self, owner):
        def titles(text: str) -> list[str]:
            groups = owner.get("/dashboard/palette/", {"q": text}).context["groups"]
            return [group.title for group in groups]

        assert titles("") == ["Actions", "Pages"]
        # The first is chosen when the palette opens: nothing that happens at once.
        assert next(iter(found(owner))) == "Create an API key"
        assert titles("create") == ["Actions", "Search", "Documentation"]

    def test_switch_to_another_workspace_and_sign_out(self, owner, alice, bob):
        Membership.objects.create(workspace=bob.workspace, user=alice.owner, role="member")
        page = owner.get("/dashboard/palette/", {"q": "switch"})
        assert f'name="workspace" value="{bob.workspace.id}"' in page.text
        (entry,) = page.context["groups"][0].entries
        assert (entry.title, entry.is_post) == ("Switch to bob", True)
        owner.post(entry.url, {"workspace": entry.value})
        assert next(iter(found(owner, "switch"))) == "Switch to alice"
        owner.post(found(owner, "sign out")["Sign out"])
        assert owner.get("/dashboard/palette/").status_code == 302


def test_any_text_is_escaped_and_a_visitor_gets_no_entries(owner, client):
    shown = owner.get("/dashboard/palette/", {"q": "<img src=x>" + "x" * 500}).text
    assert ("&lt;img" in shown, "<img" in shown) == (True, False)
    assert client.get("/dashboard/palette/?q=ada").status_code == 302
    page = owner.get("/dashboard/domains/").text
    assert '<dialog id="palette"' in page
    assert 'href="/dashboard/emails/#search" data-palette' in page
