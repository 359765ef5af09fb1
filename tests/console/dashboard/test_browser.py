import json

import pytest
from playwright.sync_api import expect

from tests.conftest import make_account, make_key
from tests.console.dashboard.axe import PHONE, page_problems
from tests.console.dashboard.browser import listener, sign_in
from tests.console.dashboard.conftest import make_email, make_received
from tests.console.dashboard.hostile import STRINGS, bundles
from tests.console.dashboard.routes import ROUTES, paths_of
from tests.console.dashboard.scenario import fill_workspace_with
from webhooks.services import create_webhook

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_an_owner_switches_workspaces(visit):
    account = make_account("alice")
    second = make_account("zebra").workspace
    second.users.add(account.owner)
    sign_in(visit, account.owner.email)

    visit.page.locator("#site-name").click()
    visit.page.get_by_role("link", name="zebra").click()

    expect(visit.page.locator(".pr-hero h2")).to_have_text("zebra")
    assert not visit.complaints


def test_a_phone_shows_a_long_url_and_labelled_dates(phone):
    account = make_account("alice")
    webhook, _ = create_webhook(account.workspace, url=f"https://shop.example/{'hooks' * 20}", events=["delivered"])
    make_key(account.workspace)
    sign_in(phone, account.owner.email)

    phone.go(f"/dashboard/webhooks/{webhook.id}/delete/")
    assert page_problems(phone, "long-url") == []

    cell = phone.go("/dashboard/keys/").get_by_role("cell", name="Never").first
    assert "Last used" in cell.evaluate("cell => getComputedStyle(cell, '::before').content")


def test_long_code_scrolls_in_its_box(look):
    look.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    sign_in(look, make_account("alice").owner.email)
    page = look.go("/dashboard/keys/add/")
    page.get_by_label("Name").fill("Shop")
    page.get_by_role("button", name="Create key").click()
    code = page.get_by_role("group", name="Code").first
    expect(code).to_contain_text("curl")
    assert page_problems(look, "code") == []
    page.set_viewport_size(PHONE)
    code.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.activeElement.scrollLeft > 0")
    assert page.locator("#created-key").evaluate("key => key.scrollWidth <= key.clientWidth")

    page.locator(".pr-samples .pr-copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == code.text_content()
    assert not look.complaints


@pytest.mark.parametrize("count", [1, pytest.param(5, marks=pytest.mark.long)])
def test_hostile_text_stays_text_on_every_page(visit, count):
    """With more bundles, fewer texts are cut at the length of a field."""
    account = make_account("alice")
    assert len(set(STRINGS)) == 40
    with_objects: list[str] = []
    for text in bundles(count):
        paths = paths_of(fill_workspace_with(account, text))
        with_objects += [path for route, path in paths.items() if "<" in ROUTES[route] and route.endswith("change")]
    sign_in(visit, account.owner.email)
    lists = [path for route, path in paths.items() if "<" not in ROUTES[route] and not route.endswith("add")]
    confirmations = [path for route, path in paths.items() if "<" in ROUTES[route] and not route.endswith("change")]

    for path in (*lists, *confirmations, *with_objects):
        page = visit.go(path)
        page.wait_for_function("window.Alpine !== undefined")

    assert not visit.dialogs
    assert not [complaint for complaint in visit.complaints if "/templates/" not in complaint]


def test_hostile_templates_and_data_stay_in_their_frame(visit):
    sign_in(visit, make_account("alice").owner.email)
    page = visit.go("/dashboard/templates/add/")
    for text in bundles(4):
        page.get_by_role("textbox", name="HTML").fill(f"<h1>Here</h1>{text.replace('{', '(')}{{{{{{x}}}}}}")
        page.locator("[name=subject]").fill(text.replace("{", "("))
        page.get_by_role("button", name="Data").click()
        page.get_by_role("textbox", name="Sample data").fill(json.dumps({"x": text}))
        page.get_by_role("button", name="Preview", exact=True).click()
        expect(page.locator("[data-subject]")).to_contain_text("alert")
        expect(page.frame_locator("iframe").locator("h1", has_text="Here")).to_be_visible()

    assert not visit.dialogs
    assert page.url.endswith("/templates/add/")
    assert not [complaint for complaint in visit.complaints if not _is_blocked(complaint)]


def hostile_html(tracker: str) -> str:
    return f"""
    <base href="{tracker}/base/">
    <meta http-equiv="refresh" content="0; url={tracker}/refresh">
    <link rel="stylesheet" href="{tracker}/sheet"><link rel="preconnect" href="{tracker}/">
    <link rel="prefetch" href="{tracker}/prefetch"><link rel="icon" href="{tracker}/icon">
    <style>@import "{tracker}/import"; @font-face {{ font-family: f; src: url({tracker}/font) }}
      body {{ background: url({tracker}/background); font-family: f }}</style>
    <script>alert('script'); top.location = "{tracker}/top"; fetch("{tracker}/fetch")</script>
    <script src="{tracker}/script"></script>
    <svg onload="alert('svg')"><image href="{tracker}/svg"/></svg>
    <img src="{tracker}/img" onerror="alert('img')"><img srcset="{tracker}/srcset 1x">
    <picture><source srcset="{tracker}/picture"><img src="{tracker}/img2"></picture>
    <video poster="{tracker}/poster" src="{tracker}/video" autoplay></video>
    <audio src="{tracker}/audio" autoplay></audio>
    <iframe src="{tracker}/frame"></iframe><iframe srcdoc="<script>alert('srcdoc')</script>"></iframe>
    <object data="{tracker}/object"></object><embed src="{tracker}/embed">
    <form action="{tracker}/form"><input autofocus onfocus="alert('focus')"><button id="go">go</button></form>
    <a id="away" href="{tracker}/link" ping="{tracker}/ping">link</a><a href="javascript:alert('href')" id="js">js</a>
    <details open ontoggle="alert('toggle')"></details><marquee onstart="alert('marquee')">x</marquee>
    <h1>Still here</h1>
    """


def test_a_hostile_email_makes_no_request_and_opens_no_dialog(visit):
    account = make_account("alice")
    sign_in(visit, account.owner.email)
    with listener() as (tracker, requested):
        html = hostile_html(tracker)
        sent, received = make_email(account.workspace, html=html), make_received(account.workspace, html=html)
        for path in (f"/dashboard/emails/{sent.id}/", f"/dashboard/received/{received.id}/"):
            page = visit.go(path)
            frame = page.frame_locator("iframe").first
            expect(frame.get_by_role("heading", name="Still here")).to_be_visible()
            for target in ("#go", "#js", "#away"):
                frame.locator(target).dispatch_event("click")
            page.wait_for_timeout(500)
            assert page.url == visit.base_url + path
            assert not [complaint for complaint in visit.complaints if not _is_blocked(complaint)]
            # Also as a page of its own, not in the frame.
            visit.go(f"{path}preview/").wait_for_timeout(500)
            visit.complaints.clear()

    assert not requested
    assert not visit.dialogs


# Console messages of Chromium when it blocks hostile markup in a frame. The last one, about a shadow root in an element
# that cannot have one, appears depending on how the other strings are parsed.
BLOCKED_MESSAGES = ("content security policy", "sandboxed", "refused", "does not support attachshadow")


def _is_blocked(complaint: str) -> bool:
    return any(words in complaint.lower() for words in BLOCKED_MESSAGES)
