"""The unsubscribe and preference pages in a browser, as used by people and by mail gateways."""

import pytest
from playwright.sync_api import expect

from events.models import Event
from streams.models import Stream
from streams.services import create_stream
from suppressions.models import Suppression
from suppressions.services import suppress_address
from tests.conftest import make_account
from tests.console.dashboard.axe import violations
from tests.console.dashboard.browser import Visit, chromium
from tests.interfaces.tracking.conftest import Reader, make_reader

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def browser():
    # Django refuses the database to a thread with a running event loop, and playwright keeps one.
    with pytest.MonkeyPatch.context() as patch, chromium() as opened:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield opened


@pytest.fixture
def reader() -> Reader:
    return make_reader(make_account("Larkspur Garden Planners").workspace)


STREAMS = {
    "newsletter": ("Newsletter", "News from the garden, once a month."),
    "offers": ("Offers", "Plants and tools at a lower price, at most once a week."),
    "events": ("Events", ""),
    "surveys": ("Surveys", "Two short questions after an order."),
}
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)> \u202eTXEN <b>{{ 7*7 }}</b> &amp; '
LOOKS = {
    "phone": {"viewport": {"width": 390, "height": 844}, "locale": "en"},
    "desktop": {"viewport": {"width": 1280, "height": 800}, "locale": "en"},
    "dark": {"viewport": {"width": 390, "height": 844}, "locale": "en", "color_scheme": "dark"},
    "german": {"viewport": {"width": 390, "height": 844}, "locale": "de-DE"},
    "narrow": {"viewport": {"width": 320, "height": 640}, "locale": "de-DE", "color_scheme": "dark"},
}
# Both scenes, the extreme widths, both schemes and both languages. Only `--long` opens the others.
ALWAYS = {("narrow", "long"), ("desktop", "twenty")}


def few_streams(reader: Reader) -> None:
    for slug, (name, description) in STREAMS.items():
        create_stream(reader.workspace, slug=slug, name=name, description=description, kind="bulk")
    suppress_address(reader.workspace, address="ada@example.com", reason="complaint", stream="events")
    suppress_address(reader.workspace, address="ada@example.com", reason="unsubscribe", stream="offers")


def twenty_streams(reader: Reader) -> None:
    few_streams(reader)
    for number in range(15):
        create_stream(reader.workspace, slug=f"topic-{number}", name=f"Topic {number}", kind="bulk")


def long_names(reader: Reader) -> None:
    names = ["Wöchentliche Nachrichten " * 4, "W" * 100, (HOSTILE * 2)[:100], "أخبار الحديقة", "\u202etxen"]
    for number, name in enumerate(names):
        text = {"description": HOSTILE * 3} if number == 2 else {"description": "d" * 500} if number == 1 else {}
        create_stream(reader.workspace, slug=f"s{number}", name=name[:100], kind="bulk", **text)
    type(reader.workspace).objects.update(name="Gesellschaft für Gartenplanung und Landschaftsbau " * 2)


SCENES = {"twenty": twenty_streams, "long": long_names}
ROWS = [
    pytest.param(look, scene, marks=[] if (look, scene) in ALWAYS else pytest.mark.long)
    for look in LOOKS
    for scene in SCENES
]


@pytest.mark.parametrize(("look", "scene"), ROWS)
def test_the_preference_page_is_accessible_and_fits(browser, live_server, reader, look, scene):
    SCENES[scene](reader)
    path = make_reader(reader.workspace, stream=Stream.objects.earliest("number").slug)
    context = browser.new_context(**LOOKS[look])
    requests: list[str] = []
    visit = Visit(context, live_server.url)
    visit.page.on("request", lambda request: requests.append(request.url))
    problems = []

    def check(name: str) -> None:
        visit.keep_screenshot(f"{name}-{look}-{scene}")
        problems.extend(f"{name}: {violation}" for violation in violations(visit.page))
        assert not visit.is_wider_than_window(), name

    for name, address in (("preferences", path.preferences_path), ("unsubscribe", path.unsubscribe_path)):
        page = visit.go(address)
        check(name)
        page.locator("button").first.click()
        page.wait_for_load_state()
        check(f"{name}-saved")

    assert problems == []
    assert (visit.complaints, visit.dialogs, context.cookies()) == ([], [], [])
    assert all(url.startswith(live_server.url) for url in requests)
    context.close()


def test_a_recipient_chooses_with_the_keyboard_and_without_scripts(browser, live_server, reader):
    few_streams(reader)
    path = make_reader(reader.workspace, stream="newsletter").preferences_path
    context = browser.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=False)
    page = Visit(context, live_server.url).go(path)
    expect(page.get_by_label("Events")).to_be_disabled()
    assert all(box.bounding_box()["height"] >= 44 for box in page.locator("li label").all())
    for key in ("Tab", "Space", "Tab", "Space", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("status")).to_have_text("Your choice is saved.")
    expect(page.get_by_label("Newsletter")).not_to_be_checked()
    expect(page.get_by_label("Offers")).to_be_checked()
    assert set(Suppression.objects.values_list("stream", "reason")) == {
        ("newsletter", "unsubscribe"), ("events", "complaint"),
    }  # fmt: skip
    page.get_by_role("button", name="Stop everything").click()
    expect(page.get_by_text("You have unsubscribed from all emails.")).to_be_visible()
    assert Suppression.objects.filter(stream="").get().reason == "unsubscribe"
    context.close()


@pytest.mark.parametrize("scheme", ["dark", pytest.param("light", marks=pytest.mark.long)])
def test_a_recipient_unsubscribes_on_a_phone_and_loading_the_page_changes_nothing(browser, live_server, reader, scheme):
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    requests: list[str] = []
    visit = Visit(context, live_server.url)
    visit.page.on("request", lambda request: requests.append(f"{request.method} {request.url}"))
    page = visit.go(reader.unsubscribe_path)
    page.mouse.wheel(0, 500)
    page.reload(wait_until="networkidle")
    assert {request.split()[0] for request in requests} == {"GET"}
    assert all(request.split()[1].startswith(live_server.url) for request in requests)
    assert not Suppression.objects.exists()
    assert not Event.objects.exists()

    expect(page.get_by_role("heading", name="Unsubscribe?")).to_be_visible()
    visit.keep_screenshot(f"unsubscribe-{scheme}")
    assert not visit.is_wider_than_window()
    button = page.get_by_role("button", name="Unsubscribe")
    assert button.bounding_box()["height"] >= 44
    button.click()
    expect(page.get_by_role("heading", name="You are unsubscribed")).to_be_visible()
    visit.keep_screenshot(f"unsubscribed-{scheme}")
    assert Suppression.objects.get().reason == "unsubscribe"
    undo = page.get_by_role("button", name="That was a mistake: undo")
    assert undo.bounding_box()["height"] >= 44
    undo.click()
    expect(page.get_by_role("status")).to_have_text("The unsubscribe is undone.")
    visit.keep_screenshot(f"undone-{scheme}")
    assert violations(page) == []
    assert not Suppression.objects.exists()
    assert (visit.complaints, context.cookies()) == ([], [])
    context.close()


def test_the_page_works_without_scripts_on_a_wide_screen_and_a_broken_link_shows_a_page(browser, live_server, reader):
    context = browser.new_context(viewport={"width": 1280, "height": 800}, java_script_enabled=False)
    visit = Visit(context, live_server.url)
    page = visit.go(reader.unsubscribe_path)
    visit.keep_screenshot("unsubscribe-wide")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="You are unsubscribed")).to_be_visible()
    assert Event.objects.exclude(email=None).get().kind == "unsubscribed"
    page = visit.go("/t/c/nonsense")
    expect(page.get_by_role("heading", name="This link does not work")).to_be_visible()
    visit.keep_screenshot("broken-link")
    context.close()
