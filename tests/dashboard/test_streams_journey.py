"""Streams in Chromium: the first one, the switch, and many with long names."""

import pytest
from playwright.sync_api import expect

from streams.models import Stream
from streams.services import create_stream
from suppressions.models import Suppression
from suppressions.services import suppress_address
from tests.conftest import make_account
from tests.dashboard.axe import violations
from tests.dashboard.browser import sign_in
from tests.dashboard.conftest import make_email

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_first_stream_is_created_and_addresses_imported_into_it(visit):
    account = make_account("alice")
    suppress_address(account.workspace, address="gone@example.com", reason="bounce")
    sign_in(visit, account.owner.email)
    page = visit.go("/dashboard/suppressions/")
    menu = page.locator("#nav-sidebar")
    expect(menu.get_by_role("link", name="Streams")).to_have_count(0)
    page.get_by_role("link", name="Create a stream").click()
    page.get_by_label("Name").fill("Newsletter")
    page.get_by_role("textbox", name="ID*").fill("News letter")
    page.get_by_label("Kind").select_option("bulk")
    page.get_by_role("button", name="Create stream").click()
    expect(page.get_by_text("An id consists of 1 to 40 characters")).to_be_visible()
    assert not violations(page)
    page.get_by_role("textbox", name="ID*").fill("newsletter")
    page.get_by_role("button", name="Create stream").click()
    expect(page.get_by_text("Newsletter was created.")).to_be_visible()
    assert not violations(page)
    page.get_by_role("link", name="Edit").click()
    assert page.get_by_label("Public", exact=True).is_checked()
    page.get_by_label("Track opens").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The stream was saved.")).to_be_visible()
    assert not Stream.objects.get().track_opens
    page.go_back()
    expect(menu.get_by_role("link", name="Streams")).to_be_visible()

    assert not visit.complaints

    # From here on, unfold's script misses the text field of its own file fields.
    visit.go("/dashboard/suppressions/import/")
    files = [{"name": "list.csv", "mimeType": "text/csv", "buffer": b"ada@example.com\nbo@example.com\n"}]
    page.get_by_label("File").set_input_files(files)
    page.get_by_label("Block").select_option("newsletter")
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("2 added, 0 already suppressed.")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(3)
    page.get_by_role("navigation", name="Stream").get_by_role("link", name="Newsletter").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    assert not violations(page)
    page.get_by_label("ada@example.com").check()
    page.get_by_role("button", name="Remove selected").click()
    expect(page.get_by_text("ada@example.com (Newsletter)")).to_be_visible()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("1 address was removed.")).to_be_visible()
    assert set(Suppression.objects.values_list("email", "stream")) == {
        ("gone@example.com", ""), ("bo@example.com", "newsletter"),
    }  # fmt: skip


def test_twenty_streams_with_long_names_fit_every_screen(look):
    account = make_account("alice")
    for number in range(19):
        name = ("Wöchentliche Nachrichten für Freunde des Gartens " * 3 if number % 2 else "W" * 100)[:100]
        create_stream(account.workspace, slug=f"stream-{number}", name=name, kind="bulk")
    email = make_email(account.workspace, stream="stream-1")
    suppress_address(account.workspace, address="ada@example.com", reason="unsubscribe", stream="stream-0")
    sign_in(look, account.owner.email)
    problems = []
    stream = Stream.objects.get(slug="stream-1").id
    for path in ("", "emails/", f"emails/{email.id}/", "suppressions/", "suppressions/add/", "keys/add/", "streams/",
                 f"streams/{stream}/", f"streams/{stream}/archive/"):  # fmt: skip
        page = look.go(f"/dashboard/{path}?stream=stream-1")
        look.keep_screenshot(f"streams-{look.name}-{path.replace('/', '-')}")
        problems += [f"{path}: {violation}" for violation in violations(page)]
        problems += [f"{path}: wider than the window"] if look.is_wider_than_window() else []
    assert problems == []
    assert not look.complaints
