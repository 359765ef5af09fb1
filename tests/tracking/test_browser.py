"""The unsubscribe page in a browser, as used by people and by mail gateways."""

import pytest
from playwright.sync_api import expect

from events.models import Event
from suppressions.models import Suppression
from tests.conftest import make_account
from tests.dashboard.browser import CHROMIUM, Visit, chromium
from tests.tracking.conftest import Reader, make_reader

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM.exists():
        pytest.fail(f"The browser tests need {CHROMIUM}; on Debian, apt-get install chromium brings it.")
    # Django refuses the database to a thread with a running event loop, and playwright keeps one.
    with pytest.MonkeyPatch.context() as patch, chromium() as opened:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield opened


@pytest.fixture
def reader() -> Reader:
    return make_reader(make_account("Larkspur Garden Planners").workspace)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_recipient_unsubscribes_on_a_phone(browser, live_server, reader, scheme):
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    visit = Visit(context, live_server.url)
    page = visit.go(reader.unsubscribe_path)
    expect(page.get_by_role("heading", name="Unsubscribe?")).to_be_visible()
    visit.keep_screenshot(f"unsubscribe-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    button = page.get_by_role("button", name="Unsubscribe")
    assert button.bounding_box()["height"] >= 44
    button.click()
    expect(page.get_by_role("heading", name="You are unsubscribed")).to_be_visible()
    visit.keep_screenshot(f"unsubscribed-{scheme}")
    assert Suppression.objects.get().reason == "unsubscribe"
    assert visit.complaints == []
    assert context.cookies() == []
    context.close()


def test_the_page_works_without_scripts_on_a_wide_screen(browser, live_server, reader):
    context = browser.new_context(viewport={"width": 1280, "height": 800}, java_script_enabled=False)
    visit = Visit(context, live_server.url)
    page = visit.go(reader.unsubscribe_path)
    visit.keep_screenshot("unsubscribe-wide")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="You are unsubscribed")).to_be_visible()
    assert Event.objects.exclude(email=None).get().kind == "unsubscribed"
    context.close()


def test_loading_the_page_changes_nothing(browser, live_server, reader):
    context = browser.new_context()
    requests: list[str] = []
    visit = Visit(context, live_server.url)
    visit.page.on("request", lambda request: requests.append(f"{request.method} {request.url}"))
    page = visit.go(reader.unsubscribe_path)
    page.mouse.wheel(0, 500)
    page.wait_for_load_state("networkidle")
    page.reload()
    page.wait_for_timeout(1000)
    assert {request.split()[0] for request in requests} == {"GET"}
    assert all(request.split()[1].startswith(live_server.url) for request in requests)
    assert not Suppression.objects.exists()
    assert not Event.objects.exists()
    context.close()


def test_a_broken_link_shows_a_page(browser, live_server):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    visit = Visit(context, live_server.url)
    page = visit.go("/t/c/nonsense")
    expect(page.get_by_role("heading", name="This link does not work")).to_be_visible()
    visit.keep_screenshot("broken-link")
    context.close()
