import json
import re

import pytest
from playwright.sync_api import expect

from tests.conftest import PASSWORD, make_account, make_domain, make_key
from tests.dashboard.axe import violations
from tests.dashboard.browser import listener, sign_in
from tests.dashboard.conftest import make_caught, make_email
from tests.dashboard.hostile import STRINGS, bundles
from tests.dashboard.routes import ROUTES, paths_of
from tests.dashboard.scenario import fill_workspace_with
from webhooks.services import create_webhook
from workspaces.models import User, Workspace

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_new_user_signs_up_and_reads_email(visit):
    page = visit.go("/dashboard/signup/")
    page.get_by_label("Email address").fill("ada@lovelace.example")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Workspace").fill("Analytical Engines")
    visit.keep_screenshot("sign-up")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("heading", name="Send your first email in four steps")).to_be_visible()
    visit.keep_screenshot("overview-empty")

    page.get_by_role("link", name="Create an API key").click()
    page.get_by_label("Name").fill("Shop, production")
    page.get_by_role("button", name="Create key").click()
    expect(page.locator("#created-key")).to_have_text(re.compile(r"^pr_[0-9A-Za-z]{22}_[0-9A-Za-z]{49}$"))
    visit.keep_screenshot("key-issued")

    workspace = Workspace.objects.get()
    make_email(workspace, subject="Your receipt", html="<h1>Thank you</h1>")
    make_caught(workspace, subject="Your receipt")
    visit.go("/dashboard/emails/")
    page.get_by_role("link", name="Your receipt").click()
    expect(page.frame_locator("iframe").get_by_role("heading", name="Thank you")).to_be_visible()
    visit.keep_screenshot("email")

    page.get_by_role("link", name="Inbox").click()
    page.get_by_role("link", name="Your receipt").click()
    expect(page.frame_locator("iframe").get_by_role("heading", name="Hello in HTML")).to_be_visible()
    page.get_by_role("button", name="Headers").click()
    expect(page.get_by_role("rowheader", name="MIME-Version")).to_be_visible()
    page.get_by_role("button", name="Source").click()
    expect(page.get_by_text("Content-Type: multipart/alternative")).to_be_visible()
    visit.keep_screenshot("inbox")
    assert not visit.complaints


def test_an_owner_revokes_a_key_and_adds_a_domain(visit):
    sign_in(visit, make_account("alice").owner.email)
    page = visit.go("/dashboard/keys/add/")
    page.get_by_label("Name").fill("Old shop")
    page.get_by_role("button", name="Create key").click()
    page.get_by_role("link", name="Done").click()
    page.get_by_role("link", name="Revoke").click()
    page.get_by_role("button", name="Revoke key").click()
    expect(page.get_by_text("Old shop was revoked")).to_be_visible()

    visit.go("/dashboard/domains/add/")
    page.get_by_label("Domain").fill("mail.example.com")
    page.get_by_role("button", name="Add domain").click()
    expect(page.get_by_text("._domainkey.mail.example.com")).to_be_visible()
    assert not visit.complaints


def test_an_owner_switches_workspaces(visit):
    account = make_account("alice")
    second = make_account("zebra").workspace
    second.users.add(account.owner)
    sign_in(visit, account.owner.email)

    visit.page.locator("#site-name").click()
    visit.page.get_by_role("link", name="zebra").click()

    expect(visit.page.locator(".pr-hero h2")).to_have_text("zebra")
    assert not visit.complaints


@pytest.mark.parametrize(
    "path", ["", "emails/", "inbox/", "domains/", "domains/add/", "keys/", "keys/add/", "password/"]
)
def test_pages_fit_a_phone(phone, path):
    account = make_account("alice")
    make_domain(account.workspace, "alice.example")
    make_email(account.workspace, subject="A rather long subject, the way that shops write them in spring")
    make_caught(account.workspace)
    sign_in(phone, account.owner.email)

    page = phone.go(f"/dashboard/{path}")

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    phone.keep_screenshot(f"phone-{path.replace('/', '-') or 'overview'}")
    assert not phone.complaints


def test_a_phone_shows_a_long_url_and_labelled_dates(phone):
    account = make_account("alice")
    webhook, _ = create_webhook(account.workspace, url=f"https://shop.example/{'hooks' * 20}", events=["delivered"])
    make_key(account.workspace)
    sign_in(phone, account.owner.email)

    page = phone.go(f"/dashboard/webhooks/{webhook.id}/delete/")
    assert not phone.is_wider_than_window()
    assert not violations(page)

    cell = phone.go("/dashboard/keys/").get_by_role("cell", name="Never").first
    assert "Last used" in cell.evaluate("cell => getComputedStyle(cell, '::before').content")
    assert not violations(page)


@pytest.mark.parametrize("path", ["suppressions/", "keys/", "webhooks/", "templates/", "members/"])
def test_german_titles_are_complete_on_a_phone(phone, path):
    account = make_account("alice")
    sign_in(phone, account.owner.email)
    User.objects.update(language="de")

    title = phone.go(f"/dashboard/{path}").locator("header h1 .truncate")

    assert title.evaluate("title => title.scrollWidth <= title.clientWidth")
    assert not phone.is_wider_than_window()
    phone.keep_screenshot(f"phone-de-{path.strip('/')}")


def test_long_code_scrolls_in_its_box(look):
    look.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    sign_in(look, make_account("alice").owner.email)
    page = look.go("/dashboard/keys/add/")
    page.get_by_label("Name").fill("Shop")
    page.get_by_role("button", name="Create key").click()
    code = page.get_by_role("group", name="Code").first
    expect(code).to_contain_text("curl")
    look.keep_screenshot(f"code-{look.name}")

    code.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.activeElement.scrollLeft > 0")
    assert not look.is_wider_than_window()
    assert page.locator("#created-key").evaluate("key => key.scrollWidth <= key.clientWidth")
    assert not violations(page)

    page.locator(".pr-samples .pr-copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == code.text_content()
    assert not look.complaints


def test_hostile_text_stays_text_on_every_page(visit, settings):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
    account = make_account("alice")
    assert len(set(STRINGS)) == 40
    with_objects: list[str] = []
    for text in bundles(5):
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
        expect(page.frame_locator("iframe").get_by_role("heading", name="Here")).to_be_visible()

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
    with listener() as (tracker, requested):
        email = make_email(account.workspace, html=hostile_html(tracker))
        sign_in(visit, account.owner.email)
        page = visit.go(f"/dashboard/emails/{email.id}/")
        url = page.url
        frame = page.frame_locator("iframe").first
        expect(frame.get_by_role("heading", name="Still here")).to_be_visible()
        for target in ("#go", "#js", "#away"):
            frame.locator(target).dispatch_event("click")
        page.wait_for_timeout(500)

    assert not requested
    assert not visit.dialogs
    assert page.url == url
    assert not [complaint for complaint in visit.complaints if not _is_blocked(complaint)]


# Console messages of Chromium when it blocks hostile markup in a frame. The last one, about a shadow root in an element
# that cannot have one, appears depending on how the other strings are parsed.
BLOCKED_MESSAGES = ("content security policy", "sandboxed", "refused", "does not support attachshadow")


def _is_blocked(complaint: str) -> bool:
    return any(words in complaint.lower() for words in BLOCKED_MESSAGES)


def test_staff_pages_are_clean(visit):
    account = make_account("alice")
    account.owner.is_staff = account.owner.is_superuser = True
    account.owner.save()
    make_domain(account.workspace, "alice.example")
    make_email(account.workspace)
    page = visit.go("/admin/")
    page.locator("[name=username]").fill(account.owner.email)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("[type=submit]").click()
    expect(page.get_by_role("link", name="Workspaces").first).to_be_visible()
    visit.keep_screenshot("staff")

    for path in ("workspaces/user/", "workspaces/user/add/", "workspaces/workspace/", "workspaces/workspace/add/"):
        visit.go(f"/admin/{path}")
        visit.keep_screenshot(f"staff-{path.replace('/', '-')}")
    for path in ("workspaces/membership/add/", "workspaces/apikey/", "domains/domain/", "emails/email/"):
        visit.go(f"/admin/{path}")

    visit.go("/dashboard/")
    assert not visit.complaints
