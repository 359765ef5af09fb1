"""Every page of the site in Chromium: fit for all hands and eyes, silent console, a screenshot to look at."""

import pytest

from tests.conftest import make_account
from tests.dashboard.axe import violations
from tests.dashboard.browser import sign_in
from tests.dashboard.scene import furnish, paths_of
from tests.dashboard.test_scoping import ROUTES

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _webhooks_anywhere(settings):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True


def walk(visit, name: str) -> list[str]:
    """Look at every page of a furnished workspace; return what is wrong with them."""
    account = make_account("alice", plan="pro")
    paths = paths_of(furnish(account), ROUTES)
    sign_in(visit, account.owner.email)
    found = []
    for route, path in paths.items():
        page = visit.go(path)
        page.wait_for_function("window.Alpine !== undefined")
        visit.keep_screenshot(f"{name}-{route}")
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            found.append(f"{path}: wider than the window")
        found += [f"{path}: {violation}" for violation in violations(page)]
    return found + visit.complaints


def test_no_page_keeps_anybody_out(visit):
    found = walk(visit, "light")

    assert not found, "\n".join(found)


def test_nor_does_one_on_a_phone_in_the_dark(phone):
    found = walk(phone, "phone")

    assert not found, "\n".join(found)


def test_the_pages_of_an_empty_workspace_are_as_good(visit):
    account = make_account("alice")
    sign_in(visit, account.owner.email)
    found = []
    for name, path in ROUTES.items():
        if name.endswith(("_changelist", "index", "usage")):
            page = visit.go(path)
            visit.keep_screenshot(f"empty-{name}")
            found += [f"{path}: {violation}" for violation in violations(page)]

    found += visit.complaints
    assert not found, "\n".join(found)
