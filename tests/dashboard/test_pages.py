"""Every page of the site in Chromium: fit for all hands and eyes, silent console, a screenshot to look at."""

from collections import defaultdict
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.urls import reverse

from tests.conftest import make_account
from tests.dashboard.axe import violations
from tests.dashboard.browser import sign_in
from tests.dashboard.scenario import furnish, paths_of
from tests.dashboard.test_scoping import ROUTES
from workspaces.account_status import proof_token
from workspaces.members import invitation_token, invite_member
from workspaces.models import Membership

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


DOORS = ("login", "signup", "reset", "new_password", "invitation", "proof")
# What only a POST reaches, what answers with a file, a frame or a redirect, and what unfold asks for by name.
WITHOUT_A_PAGE = {
    "logout",
    "jsi18n",
    "search",
    "switch_workspace",
    "ask_for_proof",
    "domains_domain_verify",
    "emails_email_preview",
    "inbox_caughtmail_preview",
    "inbox_caughtmail_source",
    "suppressions_suppression_export",
    "templates_app_template_check",
    "templates_app_template_preview",
    "webhooks_webhook_enable",
    "webhooks_webhook_test",
    "webhooks_webhookdelivery_replay",
    "workspaces_membership_withdraw",
}


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


def test_the_doors_keep_nobody_out(visit):
    account = make_account("alice")
    invited = invite_member(account.workspace, email="grace@hopper.example", role="member", by=account.owner)
    links = {"invitation": invitation_token(invited), "proof": proof_token(account.owner)}
    found = []
    for name in DOORS:
        page = visit.go(f"{ROUTES[name]}?token={links.get(name, '')}")
        visit.keep_screenshot(f"door-{name}")
        found += [f"{name}: {violation}" for violation in violations(page)]

    # A link that is gone answers 410, and the browser says so.
    found += [complaint for complaint in visit.complaints if "410" not in complaint]
    assert not found, "\n".join(found)


def test_every_route_is_looked_at():
    walked = paths_of(defaultdict(lambda: SimpleNamespace(pk="x")), ROUTES)

    assert set(ROUTES) - set(walked) - set(DOORS) == WITHOUT_A_PAGE


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


def test_the_pages_of_staff_keep_nobody_out(visit, staff):
    furnish(make_account("alice", plan="pro"))
    session = staff.cookies[settings.SESSION_COOKIE_NAME].value
    visit.page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": visit.base_url}])
    paths = [reverse(f"admin:{name}") for name in ("index", "security", "password_change")]
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        paths += [reverse(f"{name}_changelist"), reverse(f"{name}_add")]
        if thing := model._default_manager.first():
            # Histories and questions before a deletion are all alike.
            acts = ("change", "history", "delete") if model is Membership else ("change",)
            paths += [reverse(f"{name}_{act}", args=[quote(thing.pk)]) for act in acts]
    found = []
    # Some rows can only be looked at.
    for path in (path for path in paths if staff.get(path).status_code == 200):
        page = visit.go(path)
        page.wait_for_function("window.Alpine !== undefined")
        visit.keep_screenshot(f"staff{path.replace('/', '-')}")
        found += [f"{path}: {violation}" for violation in violations(page)]

    found += visit.complaints
    assert not found, "\n".join(found)
