"""Many streams with long names in Chromium."""

import pytest
from playwright.sync_api import expect

from core.workspaces.models import User
from streams.models import Stream
from streams.services import create_stream
from suppressions.services import suppress_address
from tests.conftest import make_account
from tests.console.dashboard.axe import page_problems
from tests.console.dashboard.browser import sign_in
from tests.console.dashboard.conftest import make_email

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


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
        look.go(f"/dashboard/{path}?stream=stream-1")
        problems += page_problems(look, f"streams-{path.replace('/', '-')}")
    assert problems == []
    assert not look.complaints


@pytest.mark.parametrize("window", ["phone", pytest.param("visit", marks=pytest.mark.long)])
def test_a_stream_is_created_by_purpose_with_an_id_from_its_name(request, window):
    visit = request.getfixturevalue(window)
    account = make_account("alice")
    sign_in(visit, account.owner.email)
    User.objects.update(language="de")

    page = visit.go("/dashboard/streams/add/")
    assert page_problems(visit, f"stream-add-{window}") == []
    name, slug = page.locator("[name=name]"), page.locator("[name=slug]")
    for text, proposed in (
        ("Wöchentliche Grüße, Nr. 7!", "woechentliche-gruesse-nr-7"),
        ("Łódź Ærø é", "lodz-aeroe-e"),
        ("x" * 39 + " y", "x" * 39),
        ("…", ""),
    ):
        name.fill(text)
        expect(slug).to_have_value(proposed)
    slug.fill("mine")
    name.fill("Other")
    expect(slug).to_have_value("mine")

    page.get_by_role("link", name="Anmeldecodes").click()
    expect(page.get_by_role("link", name="Anmeldecodes")).to_have_attribute("aria-current", "true")
    expect(slug).to_have_value("sign-in-codes")
    expect(page.locator("[name=deliver_within]")).to_have_value("600")
    expect(page.locator("[name=track_opens]")).not_to_be_checked()
    assert page_problems(visit, f"stream-add-codes-{window}") == []
    name.fill("Codes 2FA")
    expect(slug).to_have_value("codes-2fa")
    page.get_by_role("button", name="Stream erstellen").click()
    expect(page.locator(".pr-hero h2")).to_have_text("Codes 2FA")
    assert page_problems(visit, f"stream-{window}") == []
    stream = Stream.objects.get(workspace=account.workspace)
    assert (stream.slug, stream.priority, stream.unsubscribe) == ("codes-2fa", "high", "none")
    assert not visit.complaints
