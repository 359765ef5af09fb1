"""The preference page: only a POST changes anything, and only unsubscribes are undone."""

import re
from urllib.parse import urlencode, urlsplit

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils.html import strip_tags

from emails.links import UnsubscribeLink, preferences_url, unsubscribe_url
from emails.models import Email
from interfaces.tracking import services
from streams.models import Stream
from suppressions.models import Suppression
from suppressions.services import suppress_address
from tests.conftest import Account, mail
from tests.interfaces.tracking.conftest import Reader, make_reader
from tests.rows import each

NAME = "<script>alert(1)</script> & “News”"
ADDRESS = "ada@example.com"


@pytest.fixture
def reader(alice: Account) -> Reader:
    for slug, public in (("news", True), ("offers", True), ("receipts", False)):
        Stream.objects.create(workspace=alice.workspace, slug=slug, name=slug.title(), kind="bulk", public=public)
    reader = make_reader(alice.workspace)
    Email.objects.update(stream="news")
    return reader


def path(reader: Reader, stream: str = "news", *, of=preferences_url) -> str:
    link = UnsubscribeLink(reader.workspace.id, reader.recipient.id, ADDRESS, stream)
    if of is unsubscribe_url:
        url = unsubscribe_url(link.recipient_id, workspace_id=link.workspace_id, address=ADDRESS, stream=stream)
        return urlsplit(url).path
    return urlsplit(of(link)).path


def submit(visitor: Client, url: str, **form):
    """Submit the form of the page as a browser does."""
    return visitor.post(url, urlencode(form, doseq=True), content_type="application/x-www-form-urlencoded")


def unreachable(*_: object, **__: object) -> None:
    raise OperationalError


def suppressed() -> set[tuple[str, str]]:
    return set(Suppression.objects.values_list("stream", "reason"))


@each("of", [preferences_url, unsubscribe_url])
def test_a_get_changes_nothing(reader: Reader, visitor: Client, of):
    for method in (visitor.get, visitor.head):
        response = method(path(reader, of=of))
        assert (response.status_code, response.cookies) == (200, {})
    assert suppressed() == set()


def test_the_page_lists_public_streams_and_that_of_the_email_and_masks_the_address(reader: Reader, visitor: Client):
    assert "Receipts" in visitor.get(path(reader, "receipts")).text
    text = visitor.get(path(reader)).text
    assert "News" in text
    assert "Offers" in text
    assert "Receipts" not in text
    assert ADDRESS not in text
    assert text.count("checked") == 2


def test_a_one_click_post_blocks_exactly_the_stream_of_its_email(reader: Reader, visitor: Client):
    response = visitor.post(path(reader, of=unsubscribe_url), "List-Unsubscribe=One-Click", content_type="text/plain")
    assert "News" in response.text
    assert suppressed() == {("news", "unsubscribe")}
    assert [kind for kind, _ in reader.events()] == ["unsubscribed"]


def test_the_link_of_an_earlier_version_blocks_the_workspace(reader: Reader, visitor: Client):
    visitor.post(path(reader, "main", of=unsubscribe_url))
    assert suppressed() == {("", "unsubscribe")}


def test_a_choice_is_saved_and_can_be_undone(reader: Reader, visitor: Client):
    response = submit(visitor, path(reader), save="1", stream=["offers"])
    assert "Your choice is saved." in response.text
    assert suppressed() == {("news", "unsubscribe")}
    submit(visitor, path(reader), save="1", stream=["offers", "news"])
    assert suppressed() == set()


def test_everything_can_be_stopped_and_resumed(reader: Reader, visitor: Client):
    assert "You have unsubscribed from all emails." in submit(visitor, path(reader), everything="1").text
    assert suppressed() == {("", "unsubscribe")}
    submit(visitor, path(reader), save="1", stream=["news"])
    assert suppressed() == {("offers", "unsubscribe")}


UNDO = 'name="undo"'


@each(("stream", "blocked"), [("news", "news"), ("main", "")])
def test_an_unsubscribe_is_undone_on_the_page_after_it(reader: Reader, visitor: Client, stream, blocked):
    Email.objects.update(stream=stream)
    page = visitor.post(path(reader, stream, of=unsubscribe_url)).text
    assert UNDO in page
    assert f'action="{path(reader, stream)}"' in page
    assert suppressed() == {(blocked, "unsubscribe")}

    for _ in range(2):
        assert "The unsubscribe is undone." in submit(visitor, path(reader, stream), undo="1").text
        assert suppressed() == set()
    assert "The unsubscribe is undone." not in visitor.get(path(reader, stream)).text


def test_an_undone_unsubscribe_can_be_repeated(reader: Reader, visitor: Client, alice: Account, api):
    for _ in range(2):
        visitor.post(path(reader, of=unsubscribe_url))
        assert suppressed() == {("news", "unsubscribe")}
        submit(visitor, path(reader), undo="1")
    assert [kind for kind, _ in reader.events()] == ["unsubscribed"]
    response = api.post("/emails/send", mail(to=ADDRESS, stream="news"))
    assert response.status_code == 202


def test_undo_keeps_an_unsubscribe_from_everything_and_says_so(reader: Reader, visitor: Client):
    submit(visitor, path(reader), everything="1")
    visitor.post(path(reader, of=unsubscribe_url))
    page = submit(visitor, path(reader), undo="1").text
    assert "You have unsubscribed from all emails." in page
    assert suppressed() == {("", "unsubscribe")}


@each("reason", ["bounce", "complaint", "manual"])
def test_undo_is_not_offered_for_another_reason_and_changes_nothing(reader: Reader, visitor: Client, reason):
    suppress_address(reader.workspace, address=ADDRESS, reason=reason, stream="news")
    page = visitor.post(path(reader, of=unsubscribe_url)).text
    submit(visitor, path(reader), undo="1")
    assert "You are unsubscribed" in page
    assert UNDO not in page
    assert suppressed() == {("news", reason)}


def test_undo_does_nothing_for_a_test_email_another_address_or_a_deleted_workspace(reader: Reader, visitor: Client):
    suppress_address(reader.workspace, address="eve@example.com", reason="unsubscribe", stream="news")
    submit(visitor, path(reader), undo="1")
    assert suppressed() == {("news", "unsubscribe")}
    Email.objects.update(is_test=True)
    suppress_address(reader.workspace, address=ADDRESS, reason="unsubscribe", stream="news")
    assert UNDO not in visitor.post(path(reader, of=unsubscribe_url)).text
    submit(visitor, path(reader), undo="1")
    assert len(Suppression.objects.all()) == 2
    url, unsubscribed = path(reader), path(reader, of=unsubscribe_url)
    Email.objects.all().delete()
    reader.workspace.delete()
    assert UNDO not in visitor.post(unsubscribed).text
    assert submit(visitor, url, undo="1").status_code == 200


def test_a_lost_database_at_undo_leads_back_to_the_preferences(reader: Reader, visitor: Client, monkeypatch):
    visitor.post(path(reader, of=unsubscribe_url))
    monkeypatch.setattr(services, "undo_unsubscribe", unreachable)
    response = submit(visitor, path(reader), undo="1")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "60")
    assert '<form method="get">' in response.text
    assert suppressed() == {("news", "unsubscribe")}


@each("reason", ["bounce", "complaint", "manual"])
@each("stream", ["", "news"])
def test_only_unsubscribes_are_undone(reader: Reader, visitor: Client, reason, stream):
    suppress_address(reader.workspace, address=ADDRESS, reason=reason, stream=stream)
    submit(visitor, path(reader), save="1", stream=["news", "offers"])
    assert suppressed() == {(stream, reason)}


@each("body", ["", "stream=news", "nonsense", "x" * 100_000])
def test_a_post_without_a_button_changes_nothing(reader: Reader, visitor: Client, body):
    visitor.post(path(reader), body, content_type="application/x-www-form-urlencoded")
    assert suppressed() == set()


def test_streams_that_are_not_offered_are_ignored(reader: Reader, visitor: Client, bob: Account):
    suppress_address(reader.workspace, address=ADDRESS, reason="unsubscribe", stream="receipts")
    submit(visitor, path(reader), save="1", stream=["news", "offers", "receipts", "nothing"])
    assert suppressed() == {("receipts", "unsubscribe")}


def test_another_address_is_not_changed(reader: Reader, visitor: Client):
    suppress_address(reader.workspace, address="eve@example.com", reason="unsubscribe", stream="news")
    submit(visitor, path(reader), save="1", stream=["news", "offers"])
    assert suppressed() == {("news", "unsubscribe")}


def test_the_page_works_after_the_email_is_deleted(reader: Reader, visitor: Client):
    url = path(reader)
    Email.objects.all().delete()
    submit(visitor, url, save="1", stream=[])
    assert suppressed() == {("news", "unsubscribe"), ("offers", "unsubscribe")}


def test_names_with_markup_are_text(reader: Reader, visitor: Client):
    Stream.objects.filter(slug="news").update(name=NAME, description=NAME)
    for url in (path(reader), path(reader, of=unsubscribe_url)):
        text = visitor.get(url).text
        assert "<script" not in text
        assert "&lt;script&gt;" in text
    assert "<script" not in visitor.post(path(reader, of=unsubscribe_url)).text


def test_the_link_of_a_test_email_changes_nothing(reader: Reader, visitor: Client):
    Email.objects.update(is_test=True)
    submit(visitor, path(reader), everything="1")
    assert suppressed() == set()


def test_a_workspace_without_streams_has_no_link_to_preferences(alice: Account, visitor: Client):
    reader = make_reader(alice.workspace)
    assert 'href="/p/' not in visitor.get(reader.unsubscribe_path).text
    assert 'href="/p/' not in visitor.post(reader.unsubscribe_path).text


def test_a_forged_token_is_404(visitor: Client):
    assert visitor.get("/p/nonsense").status_code == 404
    assert visitor.post("/p/nonsense").status_code == 404


def test_the_page_speaks_german(reader: Reader, visitor: Client):
    assert "E-Mail-Einstellungen" in visitor.get(path(reader), headers={"accept-language": "de"}).text


@each(
    ("locale", "browser", "language"),
    [
        ("de-AT", "en", "de"),
        ("en", "de", "en"),
        ("fr-CA", "de", "fr"),
        ("pt-BR", "de", "en"),
        (None, "pl", "pl"),
        (None, "pt, nl;q=0.8, es;q=0.9", "es"),
        (None, "pt", "en"),
        (None, "", "en"),
    ],
)
def test_the_pages_have_the_language_of_the_email(reader: Reader, visitor: Client, locale, browser, language):
    Email.objects.update(locale_used=locale)
    for url in (path(reader), path(reader, of=unsubscribe_url)):
        assert f'<html lang="{language}">' in visitor.get(url, headers={"accept-language": browser}).text


@each(
    ("locale", "text"),
    [
        ("es", "¿Darse de baja?"),
        ("fr", "Se désabonner"),
        ("it", "Annullare"),
        ("nl", "Afmelden?"),
        ("pl", "Zrezygnować z subskrypcji?"),
    ],
)
def test_no_text_of_the_pages_is_english_in_another_language(reader: Reader, visitor: Client, locale, text):
    Email.objects.update(locale_used=locale)
    first = visitor.get(path(reader, of=unsubscribe_url)).text
    assert text in first
    pages = first + visitor.get(path(reader)).text + visitor.post(path(reader, of=unsubscribe_url)).text
    assert not re.search(r"\b(the|you|this|emails|your|Save|undo)\b", strip_tags(pages))


def test_trying_again_without_a_database_posts_no_empty_form(reader: Reader, visitor: Client, monkeypatch):
    monkeypatch.setattr(services, "save_preferences", unreachable)
    response = submit(visitor, path(reader), save="1", stream=["offers"])
    assert (response.status_code, response["Retry-After"]) == (503, "60")
    assert '<form method="get">' in response.text


def test_a_form_that_was_cut_off_is_not_called_saved(reader: Reader, visitor: Client):
    assert submit(visitor, path(reader), stream=["offers"]).status_code == 503


def test_a_blocked_address_has_no_form(reader: Reader, visitor: Client):
    suppress_address(reader.workspace, address=ADDRESS, reason="complaint", stream="news")
    assert "Not available for this address" in visitor.get(path(reader)).text
    suppress_address(reader.workspace, address=ADDRESS, reason="bounce")
    text = visitor.get(path(reader)).text
    assert "This address receives no emails from this sender." in text
    assert "<form" not in text


def test_the_description_of_a_stream_that_is_not_public_is_not_shown(reader: Reader, visitor: Client):
    Stream.objects.update(description="Internal matters")
    assert visitor.get(path(reader, "receipts")).text.count("Internal matters") == 2


@each("is_saved", [False, True])
def test_the_page_loads_nothing_external(reader: Reader, visitor: Client, is_saved):
    response = submit(visitor, path(reader), save="1") if is_saved else visitor.get(path(reader))
    assert response.status_code == 200
    assert "default-src 'none'" in response["Content-Security-Policy"]
    assert (response["Cache-Control"], response["Referrer-Policy"]) == ("no-store", "no-referrer")
    assert "a•••@e•••.com" in response.text
    assert not re.search(r"<script|<img|<iframe|style=|https?://|\son\w+=", response.text)
    assert response.cookies == {}
    assert "Cookie" not in response["Vary"]


def test_the_unsubscribe_page_names_the_stream_and_leads_to_the_preferences(reader: Reader, visitor: Client):
    text = visitor.get(path(reader, of=unsubscribe_url)).text
    assert "<b>News</b>" in text
    link = re.search(r'href="(/p/[^"]+)"', text)
    assert link is not None
    assert "Which emails do you want?" in visitor.get(link[1]).text
