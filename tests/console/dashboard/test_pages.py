"""Every page of the site in Chromium: accessible, as wide as the window, without console errors.

Most runs open all pages in one look and language, and a page of each template in the others.
"""

from collections.abc import Iterator

import pytest
from django.test import Client
from playwright.sync_api import expect

from core.workspaces.account_status import confirmation_token
from core.workspaces.members import invitation_token, invite_member
from core.workspaces.models import User
from templates_app.models import Template
from tests.conftest import Account
from tests.console.dashboard.axe import page_problems
from tests.console.dashboard.browser import Visit, looks_in, sign_in, use_session
from tests.console.dashboard.conftest import signed_in
from tests.console.dashboard.routes import PAGES, ROUTES, SIGNED_OUT, paths_of, staff_paths
from tests.console.dashboard.scenario import fill_workspace, fill_workspace_with

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CUT_CELLS = """(cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1)
    .map((cell) => cell.dataset.label)"""
# The titles of lists that are cut. Other titles may have an address of any length.
CUT_TITLES = """[...document.querySelectorAll("header h1 .truncate")]
    .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent.trim())"""
# The texts of links and buttons that begin left of the window.
CUT_OFF = """[...document.querySelectorAll("main :is(a, button)")]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().left < 0)
    .map((one) => one.textContent.trim())"""
LISTS = [
    "suppressions_suppression_changelist",
    "workspaces_apikey_changelist",
    "webhooks_webhook_changelist",
    "templates_app_template_changelist",
    "workspaces_membership_changelist",
]


def walk(visit: Visit, paths: dict[str, str], *, language: str = "en") -> list[str]:
    """Open each page; return the problems of all."""
    problems = []
    for name, path in paths.items():
        page = visit.go(path)
        page.wait_for_function("window.Alpine !== undefined")
        expect(page.locator("html")).to_have_attribute("lang", language)
        problems += page_problems(visit, f"{language}-{name}")
        cut = page.evaluate(CUT_OFF) + (page.evaluate(CUT_TITLES) if name in LISTS else [])
        problems += [f"{name}: {text} is cut" for text in cut]
    return problems + visit.complaints


def template_pages(account: Account) -> dict[str, str]:
    """Return the pages of layouts and partials, which have the routes of templates."""
    brand, footer = (Template.objects.get(workspace=account.workspace, alias=alias).id for alias in ("brand", "footer"))
    paths = {
        "layouts": "?kind=layout",
        "add-layout": "add/?kind=layout",
        "add-partial": "add/?kind=partial",
        "add-in-layout": f"add/?starter=receipt&layout={brand}",
        "layout": f"{brand}/",
        "partial": f"{footer}/",
        "in-use": f"{footer}/delete/",
    }
    return {f"template-{name}": f"/dashboard/templates/{path}" for name, path in paths.items()}


def one_of_each_template(client: Client, paths: dict[str, str]) -> dict[str, str]:
    """Return a page of each template, without those that lead to another page."""
    templates = {name: client.get(path).templates for name, path in paths.items()}
    found = {used[0].name: name for name, used in templates.items() if used}
    return {name: paths[name] for name in found.values()}


@pytest.mark.parametrize(("look", "language"), looks_in("en", "de"), indirect=["look"])
def test_every_page(look, account, language):
    paths = paths_of(fill_workspace(account)) | template_pages(account)
    sign_in(look, account.owner.email)
    User.objects.update(language=language, time_zone="Europe/Berlin")

    assert walk(look, paths, language=language) == []


def test_a_page_of_each_template_is_german_on_a_phone_in_dark_mode(phone, account):
    paths = paths_of(fill_workspace(account))
    sign_in(phone, account.owner.email)
    User.objects.update(language="de", time_zone="Europe/Berlin")

    chosen = {name: paths[name] for name in LISTS} | one_of_each_template(signed_in(account.owner), paths)
    chosen |= template_pages(account)
    assert len(chosen) > 20
    assert walk(phone, chosen, language="de") == []


def test_signed_out_pages(visit, account):
    invited = invite_member(account.workspace, email="grace@hopper.example", role="member", by=account.owner)
    links = {"invitation": invitation_token(invited), "confirm_email": confirmation_token(account.owner)}
    paths = {name: f"{ROUTES[name]}?token={links.get(name, '')}" for name in sorted(SIGNED_OUT)}

    # An expired link returns 410, which the browser logs.
    assert [problem for problem in walk(visit, paths) if "410" not in problem] == []


def test_the_pages_of_an_empty_workspace(visit, account):
    sign_in(visit, account.owner.email)
    paths = {name: path for name, path in PAGES.items() if name.endswith(("_changelist", "index", "usage", "bounces"))}

    assert walk(visit, paths) == []


def pages_of_staff(staff: Client) -> Iterator[tuple[str, str]]:
    """Return the pages of the staff admin that staff may open: some models are read-only."""
    return ((path.replace("/", "-"), path) for path in staff_paths() if staff.get(path).status_code == 200)


@pytest.mark.long
@pytest.mark.parametrize(("look", "language"), looks_in("en", "de"), indirect=["look"])
def test_every_page_of_staff(look, account, staff, language):
    fill_workspace(account)
    use_session(look, User.objects.get(is_staff=True))
    User.objects.filter(is_staff=True).update(language=language)

    assert walk(look, dict(pages_of_staff(staff)), language=language) == []


def test_a_page_of_each_template_of_staff(visit, account, staff):
    fill_workspace(account)
    use_session(visit, User.objects.get(is_staff=True))

    assert walk(visit, one_of_each_template(staff, dict(pages_of_staff(staff)))) == []


def test_staff_pages_with_long_values_fit_a_phone(phone, account, staff):
    fill_workspace_with(account, "long" * 60)
    User.objects.filter(is_staff=True).update(language="de")
    use_session(phone, User.objects.get(is_staff=True))
    problems = []
    for name, path in pages_of_staff(staff):
        phone.go(path).wait_for_function("window.Alpine !== undefined")
        cut = phone.page.locator("#result_list tbody :is(td, th)").evaluate_all(CUT_CELLS)
        problems += [f"{path}: {text} is cut" for text in cut]
        problems += page_problems(phone, f"staff-long{name}")

    assert problems + phone.complaints == []
    phone.go("/admin/workspaces/apikey/")
    assert phone.page.locator("[data-label='Läuft ab']").count() == 1
