"""Unsubscribing: only a POST has an effect, and the link works as long as the workspace exists."""

import re

import pytest
from django.test import Client

from core.workspaces.models import Workspace
from emails.links import unsubscribe_url
from emails.models import Email, Recipient
from events.models import Event
from suppressions.models import Suppression
from suppressions.services import suppress_address
from tests.conftest import Account, Api, mail
from tests.interfaces.tracking.conftest import Reader, make_reader, path_of
from tests.rows import each

ONE_CLICK = "List-Unsubscribe=One-Click"
MULTIPART = (
    '--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--b--\r\n',
    "multipart/form-data; boundary=b",
)
BODIES = {
    "form": ("", "application/x-www-form-urlencoded"),
    "one click": (ONE_CLICK, "application/x-www-form-urlencoded"),
    "one click, multipart": MULTIPART,
    "one click, by a careless client": (ONE_CLICK, "text/plain"),
    "broken multipart": ("--x", "multipart/form-data"),
    "much": ("x" * 3_000_000, "application/octet-stream"),
}


@pytest.fixture
def strict_visitor() -> Client:
    """A client that gets 403 wherever a CSRF token is required."""
    return Client(enforce_csrf_checks=True)


def unsubscribe_path(workspace: Workspace, recipient: Recipient, *, address: str) -> str:
    return path_of(unsubscribe_url(recipient.id, workspace_id=workspace.id, address=address))


def suppressed() -> list[tuple[str, str, str]]:
    return list(Suppression.objects.values_list("workspace_id", "email", "reason"))


@each(("body", "content_type"), BODIES.values())
def test_a_post_unsubscribes(reader: Reader, strict_visitor: Client, body, content_type):
    response = strict_visitor.post(reader.unsubscribe_path, body, content_type=content_type)
    assert (response.status_code, response.cookies) == (200, {})
    assert "You are unsubscribed" in response.text
    assert suppressed() == [(reader.workspace.id, "ada@example.com", "unsubscribe")]
    assert reader.events() == [("unsubscribed", {"emailId": reader.email.id, "to": "ada@example.com"})]
    assert (reader.recipient.state, reader.email.status) == ("delivered", "delivered")


def test_emails_to_the_address_are_refused_afterwards(api: Api, alice: Account, visitor: Client):
    reader = make_reader(alice.workspace)
    visitor.post(reader.unsubscribe_path)
    response = api.post("/emails/send", mail(to="Ada@Example.com"))
    assert (response.status_code, response.json()["code"]) == (422, "recipient_suppressed")
    assert response.json()["recipients"][0]["reason"] == "unsubscribe"


def test_unsubscribing_again_changes_nothing(reader: Reader, visitor: Client):
    for _ in range(3):
        assert visitor.post(reader.unsubscribe_path).status_code == 200
    assert len(suppressed()) == 1
    assert reader.kinds() == ["unsubscribed"]


def test_a_post_after_the_owner_removed_the_suppression_adds_it_again(reader: Reader, visitor: Client):
    visitor.post(reader.unsubscribe_path)
    Suppression.objects.all().delete()
    visitor.post(reader.unsubscribe_path)
    assert len(suppressed()) == 1
    assert reader.kinds() == ["unsubscribed"]


def test_an_address_that_is_already_suppressed_keeps_its_reason_and_the_event_is_recorded(
    reader: Reader, visitor: Client
):
    suppress_address(reader.workspace, address="ADA@example.com", reason="manual")
    assert visitor.post(reader.unsubscribe_path).status_code == 200
    assert suppressed() == [(reader.workspace.id, "ADA@example.com", "manual")]
    assert reader.kinds() == ["unsubscribed"]


def test_each_recipient_of_an_email_unsubscribes_separately(reader: Reader, visitor: Client):
    other = Recipient.objects.create(
        email_id=reader.recipient.email_id, kind="bcc", position=1, address="bob@example.com", state="delivered"
    )
    visitor.post(Reader(other, reader.workspace).unsubscribe_path)
    assert [email for _, email, _ in suppressed()] == ["bob@example.com"]
    assert reader.events() == []


def test_the_link_works_after_the_email_is_deleted(reader: Reader, visitor: Client):
    path = reader.unsubscribe_path
    reader.email.delete()
    assert "alice" in visitor.get(path).text
    assert visitor.post(path).status_code == 200
    assert suppressed() == [(reader.workspace.id, "ada@example.com", "unsubscribe")]
    assert not Event.objects.exclude(email=None).exists()


def test_the_link_of_a_deleted_workspace_shows_no_error(reader: Reader, visitor: Client):
    path = reader.unsubscribe_path
    reader.email.delete()
    Workspace.objects.all().delete()
    assert visitor.get(path).status_code == visitor.post(path).status_code == 200
    assert suppressed() == []


@each("headers", [{}, {"sec-purpose": "prefetch"}, {"purpose": "prefetch"}, {"user-agent": "BarracudaCentral/1.0"}])
def test_loading_the_page_many_times_changes_nothing(reader: Reader, visitor: Client, headers):
    for _ in range(10):
        for path in (reader.unsubscribe_path, f"{reader.unsubscribe_path}?{ONE_CLICK}"):
            assert visitor.get(path, headers=headers).status_code == 200
            assert visitor.head(path, headers=headers).status_code == 200
    assert suppressed() == []
    assert reader.events() == []


@each("method", ["put", "patch", "delete", "options"])
def test_other_methods_are_refused_and_change_nothing(reader: Reader, visitor: Client, method):
    response = getattr(visitor, method)(reader.unsubscribe_path, ONE_CLICK)
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD, POST")
    assert suppressed() == []


@each("act", ["get", "post"])
def test_the_page_loads_nothing_external_and_shows_no_address(reader: Reader, visitor: Client, act):
    response = getattr(visitor, act)(reader.unsubscribe_path)
    assert response["Content-Security-Policy"] == (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert (response["X-Frame-Options"], response["Referrer-Policy"]) == ("DENY", "no-referrer")
    assert (response["Cache-Control"], response["X-Robots-Tag"]) == ("no-store", "noindex, nofollow")
    assert response["X-Content-Type-Options"] == "nosniff"
    page = response.text
    assert "ada@example.com" not in page
    assert "a•••@e•••.com" in page
    assert not re.search(r"<script|<img|<iframe|style=|https?://|\son\w+=", page)
    assert "Set-Cookie" not in response
    assert "Cookie" not in response.get("Vary", "")


def test_the_page_names_the_sender(reader: Reader, visitor: Client):
    page = visitor.get(reader.unsubscribe_path).text
    assert "<b>Alice</b>" in page
    assert "<span>alice.example</span>" in page
    assert page.count("<button") == page.count("<form") == 1
    assert "Nothing changes until you press the button." in page


@each("sender", ["hi@alice.example", "<hi@alice.example>"])
def test_the_sender_of_an_address_without_a_name_is_the_workspace(reader: Reader, visitor: Client, sender):
    Email.objects.update(sender=sender)
    for act in (visitor.get, visitor.post):
        assert "<b>alice</b> <span>alice.example</span>" in " ".join(act(reader.unsubscribe_path).text.split())


def test_a_quoted_name_is_shown_without_quotes(reader: Reader, visitor: Client):
    Email.objects.update(sender='"Larkspur, Inc. \\"Garden\\"" <hi@alice.example>')
    assert "<b>Larkspur, Inc. &quot;Garden&quot;</b>" in visitor.get(reader.unsubscribe_path).text


@each("is_deleted", [False, True])
def test_names_and_addresses_are_escaped(reader: Reader, visitor: Client, is_deleted):
    name = "<script>alert(1)</script> & Söhne"
    Workspace.objects.update(name=name)
    Email.objects.update(sender=f"{name} <hi@alice.example>")
    path = unsubscribe_path(reader.workspace, reader.recipient, address='<b>"@<i>.example')
    if is_deleted:
        reader.email.delete()
    for act in (visitor.get, visitor.post):
        page = act(path).text
        assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; Söhne" in page
        assert "<script" not in page
        assert "&lt;•••@&lt;•••.example" in page


def test_every_invalid_link_shows_the_same_page(reader: Reader, visitor: Client):
    pages = {act(f"/u/{token}").text for act in (visitor.get, visitor.post) for token in ("x", "A" * 90, "é/ü")}
    assert len(pages) == 1
    assert "This link does not work" in pages.pop()
    assert visitor.get("/u/x").status_code == visitor.post("/u/x").status_code == 404
    assert suppressed() == []


def test_the_page_reads_no_session_and_needs_three_queries(reader: Reader, visitor: Client, django_assert_num_queries):
    path = reader.unsubscribe_path
    with django_assert_num_queries(3):
        visitor.get(path)
