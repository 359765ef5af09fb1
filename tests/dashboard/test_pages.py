"""Every page of the site in Chromium: accessible, without console errors, with a screenshot for review."""

from collections.abc import Iterator

import pytest
from django.conf import settings

from tests.conftest import make_account
from tests.dashboard.axe import violations
from tests.dashboard.browser import sign_in
from tests.dashboard.routes import PAGES, ROUTES, SIGNED_OUT, paths_of, staff_paths
from tests.dashboard.scenario import fill_workspace, fill_workspace_with
from workspaces.account_status import confirmation_token
from workspaces.members import invitation_token, invite_member
from workspaces.models import User

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CUT_CELLS = """(cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1)
    .map((cell) => cell.dataset.label)"""


@pytest.fixture(autouse=True)
def _webhooks_anywhere(settings):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True


def walk(visit, name: str) -> list[str]:
    """Open every page of a filled workspace; return the violations."""
    account = make_account("alice", plan="pro")
    paths = paths_of(fill_workspace(account))
    sign_in(visit, account.owner.email)
    problems = []
    for route, path in paths.items():
        page = visit.go(path)
        page.wait_for_function("window.Alpine !== undefined")
        visit.keep_screenshot(f"{name}-{route}")
        if visit.is_wider_than_window():
            problems.append(f"{path}: wider than the window")
        problems += [f"{path}: {violation}" for violation in violations(page)]
    return problems + visit.complaints


def test_every_page_is_accessible(visit):
    problems = walk(visit, "light")

    assert not problems, "\n".join(problems)


def test_every_page_is_accessible_on_a_phone_in_dark_mode(phone):
    problems = walk(phone, "phone")

    assert not problems, "\n".join(problems)


def test_signed_out_pages_are_accessible(visit):
    account = make_account("alice")
    invited = invite_member(account.workspace, email="grace@hopper.example", role="member", by=account.owner)
    links = {"invitation": invitation_token(invited), "confirm_email": confirmation_token(account.owner)}
    problems = []
    for name in sorted(SIGNED_OUT):
        page = visit.go(f"{ROUTES[name]}?token={links.get(name, '')}")
        visit.keep_screenshot(f"signed-out-{name}")
        problems += [f"{name}: {violation}" for violation in violations(page)]

    # An expired link returns 410, which the browser logs.
    problems += [complaint for complaint in visit.complaints if "410" not in complaint]
    assert not problems, "\n".join(problems)


def test_the_pages_of_an_empty_workspace_are_accessible(visit):
    account = make_account("alice")
    sign_in(visit, account.owner.email)
    problems = []
    for name, path in PAGES.items():
        if name.endswith(("_changelist", "index", "usage", "bounces")):
            page = visit.go(path)
            visit.keep_screenshot(f"empty-{name}")
            problems += [f"{path}: {violation}" for violation in violations(page)]

    problems += visit.complaints
    assert not problems, "\n".join(problems)


def open_staff_pages(visit, staff) -> Iterator[str]:
    """Open the pages of the staff admin one by one; yield the path of each. Some models are read-only."""
    session = staff.cookies[settings.SESSION_COOKIE_NAME].value
    visit.page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": visit.base_url}])
    for path in (path for path in staff_paths() if staff.get(path).status_code == 200):
        visit.go(path).wait_for_function("window.Alpine !== undefined")
        yield path


@pytest.mark.parametrize("language", ["en", "de"])
def test_staff_pages_are_accessible(visit, staff, language):
    fill_workspace(make_account("alice", plan="pro"))
    User.objects.filter(is_staff=True).update(language=language)
    problems = []
    for path in open_staff_pages(visit, staff):
        assert visit.page.locator("html").get_attribute("lang") == language
        visit.keep_screenshot(f"staff-{language}{path.replace('/', '-')}")
        problems += [f"{path}: {violation}" for violation in violations(visit.page)]

    problems += visit.complaints
    assert not problems, "\n".join(problems)


def test_staff_pages_with_long_values_fit_a_phone(phone, staff):
    fill_workspace_with(make_account("alice", plan="pro"), "long" * 60)
    User.objects.filter(is_staff=True).update(language="de")
    problems = []
    for path in open_staff_pages(phone, staff):
        cut = phone.page.locator("#result_list tbody :is(td, th)").evaluate_all(CUT_CELLS)
        problems += [f"{path}: {text} is cut" for text in cut]
        if phone.is_wider_than_window():
            problems.append(f"{path}: wider than the window")
        problems += [f"{path}: {violation}" for violation in violations(phone.page)]

    problems += phone.complaints
    assert not problems, "\n".join(problems)
    phone.go("/admin/workspaces/apikey/")
    assert phone.page.locator("[data-label='Läuft ab']").count() == 1
