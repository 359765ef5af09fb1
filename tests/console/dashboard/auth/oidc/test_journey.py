"""Signing in with oidc-provider in Chromium: the first sign-in, roles, links, sign-out, and life without passwords."""

from io import StringIO

import pytest
from django.core.management import call_command
from playwright.sync_api import expect

from core.workspaces.models import User
from tests.conftest import PASSWORD, make_account
from tests.console.dashboard.auth.oidc.conftest import rules_of
from tests.console.dashboard.axe import violations
from tests.console.dashboard.browser import Visit

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def account():
    return make_account("alice")


@pytest.fixture
def use_provider(configure, provider, live_server, account):
    """Return a function that configures the provider, with rules for the workspace of Alice by default."""

    def use(**others):
        configure(
            provider.issuer, *rules_of(account), public_url=live_server.url, STAFF_SECOND_FACTOR="optional", **others
        )

    provider.people.clear()
    use()
    return use


def sign_in(visit: Visit, name: str, *, path: str = "/dashboard/login/") -> None:
    """Sign in at the provider, which asks for the account, and the first time for consent."""
    page = visit.go(path)
    page.get_by_role("link", name="Sign in with Example ID").click()
    page.get_by_placeholder("Enter any login").fill(name)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def sign_in_again(visit: Visit, *, path: str = "/dashboard/login/") -> None:
    """Sign in while the session at the provider lasts: it asks nothing."""
    visit.go("/dashboard/").context.clear_cookies(name="session")
    visit.go(path).get_by_role("link", name="Sign in with Example ID").click()


def own_complaints(visit: Visit) -> list[str]:
    """Return the complaints of pages of this service: those of the provider load a font from the Internet."""
    return [complaint for complaint in visit.complaints if complaint.startswith(visit.base_url)]


def check_page(visit: Visit, name: str) -> None:
    """Keep a screenshot of the page, which is accessible and fits the window."""
    visit.keep_screenshot(name)
    assert not violations(visit.page)
    assert not visit.is_wider_than_window()


def expect_overview(visit: Visit) -> None:
    expect(visit.page.get_by_role("heading", name="Overview")).to_be_visible()


def test_the_first_sign_in_creates_an_account_with_the_roles_of_its_groups(visit, provider, use_provider, account):
    provider.set_person("grace", email="Grace@example.com", email_verified=True, groups=["mail", "other"])

    visit.go("/dashboard/login/")
    check_page(visit, "oidc-sign-in")
    sign_in(visit, "grace")

    expect_overview(visit)
    user = User.objects.get(email="grace@example.com")
    assert not user.has_usable_password()
    membership = user.memberships.get()
    assert (membership.workspace, membership.role, membership.claimed_role) == (account.workspace, "member", "member")
    visit.go("/dashboard/members/")
    expect(visit.page.get_by_text("from Example ID")).to_be_visible()
    check_page(visit, "oidc-members")
    visit.go("/dashboard/security/")
    expect(visit.page.get_by_text("You can sign in with Example ID")).to_be_visible()
    check_page(visit, "oidc-security")
    assert not own_complaints(visit)


def test_roles_follow_the_claims_at_each_sign_in(visit, provider, use_provider):
    provider.set_person("grace", email="grace@example.com", email_verified=True, groups=["mail"])
    sign_in(visit, "grace")
    expect_overview(visit)
    user = User.objects.get(email="grace@example.com")

    provider.set_person("grace", email="grace@example.com", email_verified=True, groups=["mail", "mail-owners"])
    sign_in_again(visit)
    expect_overview(visit)
    assert user.memberships.get().role == "owner"

    provider.set_person("grace", email="grace@example.com", email_verified=True, groups=[])
    sign_in_again(visit)
    expect(visit.page.get_by_text("Your account at Example ID has no access to this page.")).to_be_visible()
    check_page(visit, "oidc-no-access")
    assert not user.memberships.exists()


def test_an_account_that_exists_is_linked_by_its_password(visit, provider, use_provider, account):
    provider.set_person("alice", email=account.owner.email, email_verified=True, groups=[])
    sign_in(visit, "alice")

    page = visit.page
    expect(page.get_by_role("heading", name="Link your accounts")).to_be_visible()
    check_page(visit, "oidc-link")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Link").click()
    expect_overview(visit)
    assert account.owner.identities.get().subject == "alice"
    assert not own_complaints(visit)


def test_staff_sign_in_and_out_at_their_site(visit, provider, use_provider):
    provider.set_person("grace", email="grace@example.com", email_verified=True, groups=["mail-admins"])
    sign_in(visit, "grace", path="/admin/login/")
    page = visit.page
    expect(page.get_by_role("heading", name="Operations")).to_be_visible()

    page.locator("form[action='/admin/logout/']").evaluate("form => form.submit()")

    # The provider asks whether to end its session, and leads back.
    page.get_by_role("button", name="Yes, sign me out").click()
    page.wait_for_url("**/admin/login/**")
    page.get_by_role("link", name="Sign in with Example ID").click()
    expect(page.get_by_placeholder("Enter any login")).to_be_visible()
    assert not own_complaints(visit)


def test_the_end_of_the_session_at_the_provider_ends_all_sessions_here(visit, phone, provider, use_provider):
    """Signing out at the provider calls /oidc/backchannel."""
    provider.set_person("grace", email="grace@example.com", email_verified=True, groups=["mail"])
    sign_in(visit, "grace")
    expect_overview(visit)
    sign_in(phone, "grace")
    expect_overview(phone)

    visit.page.goto(f"{provider.issuer}/session/end")
    visit.page.get_by_role("button", name="Yes, sign me out").click()
    expect(visit.page.get_by_text("Sign-out Success")).to_be_visible()

    for browser in (visit, phone):
        browser.go("/dashboard/")
        expect(browser.page.get_by_role("link", name="Sign in with Example ID")).to_be_visible()


def test_without_passwords_the_provider_and_a_link_are_the_ways_in(visit, provider, use_provider, account):
    use_provider(PASSWORDS="off")
    page = visit.go("/dashboard/login/")
    expect(page.get_by_role("link", name="Sign in with Example ID")).to_be_visible()
    expect(page.get_by_label("Password")).to_have_count(0)
    check_page(visit, "oidc-passwords-off")
    output = StringIO()
    call_command("sign_in_link", account.owner.email, stdout=output)
    link = output.getvalue().strip()

    page.goto(link)
    check_page(visit, "sign-in-link")
    page.get_by_role("button", name="Sign in").click()
    expect_overview(visit)

    page.goto(link)
    expect(page.get_by_text("This link is no longer valid")).to_be_visible()


def test_a_provider_that_is_down_is_a_page_with_a_way_back(visit, use_provider):
    use_provider(OIDC_ISSUER="http://127.0.0.1:1")
    visit.go("/dashboard/login/").get_by_role("link", name="Sign in with Example ID").click()
    expect(visit.page.get_by_text("Example ID does not answer")).to_be_visible()
    check_page(visit, "oidc-unavailable")

    visit.page.get_by_role("link", name="Sign in with a password").click()
    expect(visit.page.get_by_label("Password")).to_be_visible()
