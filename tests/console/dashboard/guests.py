"""Guests: how a browser gets to the pages that need more than a path and a signed-in user."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.tokens import default_token_generator
from django.db import connection
from django.test import Client
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from core.workspaces.account_status import confirmation_token, suspend_workspace
from core.workspaces.members import invitation_token, invite_member
from core.workspaces.models import User, Workspace
from core.workspaces.second_factor import begin_enrolment, code_at, confirm_enrolment
from domains.shared_records import share_records, shared_records_token
from interfaces.tracking.suspensions import suspended_workspaces
from tests.conftest import PASSWORD, Account, make_account
from tests.console.dashboard.browser import Visit, use_session
from tests.console.dashboard.scenario import checked_domain
from tests.interfaces.tracking.conftest import make_reader

LONG_ADDRESS = f"grace.brewster.murray.hopper.of.the.compiler.group@{'long-name.' * 8}example"
# More than a page accepts (docs/decisions/0079).
TOO_LARGE = 2 * 1024 * 1024 + 1
SEND_LARGE_FORM = """(size) => {
    const form = document.querySelector("form[method=post]");
    const field = form.appendChild(document.createElement("textarea"));
    [field.name, field.value] = ["large", "x".repeat(size)];
    form.submit();
}"""


@dataclass(frozen=True)
class Guest:
    """A browser, and the account whose pages it opens."""

    visit: Visit
    account: Account

    def sign_in(self, user: User | None = None) -> None:
        use_session(self.visit, user or self.account.owner)

    def submit(self, **values: str) -> None:
        """Fill in the fields and send their form."""
        form = self.visit.page.locator(f"form:has([name={next(iter(values))}])")
        for name, value in values.items():
            form.locator(f"[name={name}]").fill(value)
        with self.visit.page.expect_navigation():
            form.locator("[type=submit]").click()


def throttled_sign_in(guest: Guest) -> None:
    for _ in range(10):
        Client().post("/dashboard/login/", {"username": "eve@example.com", "password": "x"})
    refused_sign_in(guest)


def refused_sign_in(guest: Guest) -> None:
    guest.visit.go("/dashboard/login/")
    guest.submit(username="eve@example.com", password="wrong")


def sign_in_without_access(guest: Guest) -> None:
    guest.sign_in(User.objects.create_user(email="nobody@example.com", password=PASSWORD))
    guest.visit.go("/dashboard/login/")


def code(guest: Guest) -> None:
    turn_on_second_factor(guest.account.owner)
    guest.visit.go("/dashboard/login/")
    guest.submit(username=guest.account.owner.email, password=PASSWORD)


def throttled_code(guest: Guest) -> None:
    code(guest)
    for _ in range(6):
        guest.submit(code="000000")


def refused_sign_up(guest: Guest) -> None:
    guest.visit.go("/dashboard/signup/")
    guest.submit(email="ada", password="12345", workspace_name="")


def reset_sent(guest: Guest) -> None:
    guest.visit.go("/dashboard/reset/")
    guest.submit(email=LONG_ADDRESS)


def new_password(guest: Guest) -> None:
    account = urlsafe_base64_encode(force_bytes(guest.account.owner.pk))
    token = default_token_generator.make_token(guest.account.owner)
    guest.visit.go(f"/dashboard/reset/new/?account={account}&token={token}")


def refused_password(guest: Guest) -> None:
    new_password(guest)
    guest.submit(password="password")


def changed_password(guest: Guest) -> None:
    new_password(guest)
    guest.submit(password="a long enough passphrase")


def invitation(guest: Guest, email: str = LONG_ADDRESS) -> None:
    invited = invite_member(guest.account.workspace, email=email, role="member", by=guest.account.owner)
    guest.visit.go(f"/dashboard/invitation/?token={invitation_token(invited)}")


def refused_invitation(guest: Guest) -> None:
    invitation(guest)
    guest.submit(password="12345")


def invitation_of_an_account(guest: Guest) -> None:
    invitation(guest, make_account("bob").owner.email)


def invitation_to_join(guest: Guest) -> None:
    carol = make_account("carol").owner
    guest.sign_in(carol)
    invitation(guest, carol.email)


def invitation_of_another_account(guest: Guest) -> None:
    guest.sign_in()
    invitation(guest)


def shared_records(guest: Guest) -> None:
    domain = checked_domain(guest.account.workspace)
    share_records(domain)
    guest.visit.go(f"/dashboard/records/?token={shared_records_token(domain)}")


def confirmation(guest: Guest) -> None:
    Workspace.objects.filter(id=guest.account.workspace.id).update(is_proven=False)
    guest.visit.go(f"/dashboard/proof/?token={confirmation_token(guest.account.owner)}")


def confirmation_signed_in(guest: Guest) -> None:
    guest.sign_in()
    confirmation(guest)


def confirmation_of_another_account(guest: Guest) -> None:
    guest.sign_in(make_account("dave").owner)
    confirmation(guest)


def refused_second_factor(guest: Guest) -> None:
    guest.sign_in()
    guest.visit.go("/dashboard/security/")
    guest.submit(code="000000", password="wrong")


def recovery_codes(guest: Guest) -> None:
    guest.sign_in()
    guest.visit.go("/dashboard/security/")
    guest.submit(code=current_code(guest.account.owner), password=PASSWORD)


def enabled_second_factor(guest: Guest) -> None:
    turn_on_second_factor(guest.account.owner)
    opened("/dashboard/security/", is_signed_in=True)(guest)


def refused_change_of_password(guest: Guest) -> None:
    guest.sign_in()
    guest.visit.go("/dashboard/password/")
    guest.submit(old_password="wrong", new_password1="12345", new_password2="1")


def second_factor_of_staff(guest: Guest) -> None:
    guest.sign_in(User.objects.create_superuser(email="staff@postrider.example", password=PASSWORD))
    guest.visit.go("/admin/")


def unconfirmed_workspace(guest: Guest) -> None:
    Workspace.objects.filter(id=guest.account.workspace.id).update(is_proven=False)
    guest.sign_in()
    guest.visit.go("/dashboard/")


def suspended_workspace(guest: Guest) -> None:
    suspend_workspace(guest.account.workspace, reason="Clean your lists, then contact the operator of this service.")
    guest.sign_in()
    guest.visit.go("/dashboard/")


def refused_form(guest: Guest) -> None:
    guest.visit.go("/dashboard/login/")
    guest.visit.page.context.clear_cookies()
    guest.submit(username="ada@lovelace.example", password="x")


def page_of_owners(guest: Guest) -> None:
    guest.account.owner.memberships.update(role="member")
    guest.sign_in()
    guest.visit.go("/dashboard/audit/")


def large_form(guest: Guest) -> None:
    guest.visit.go("/dashboard/login/")
    with guest.visit.page.expect_navigation():
        guest.visit.page.evaluate(SEND_LARGE_FORM, TOO_LARGE)


def internal_error(guest: Guest) -> None:
    guest.sign_in()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE webhooks_webhook RENAME TO renamed")
        try:
            guest.visit.go("/dashboard/webhooks/")
        finally:
            cursor.execute("ALTER TABLE renamed RENAME TO webhooks_webhook")


def unsubscribe(guest: Guest) -> None:
    guest.visit.go(make_reader(guest.account.workspace).unsubscribe_path)


def unsubscribed(guest: Guest) -> None:
    unsubscribe(guest)
    with guest.visit.page.expect_navigation():
        guest.visit.page.get_by_role("button").click()


def link_of_a_suspended_sender(guest: Guest) -> None:
    reader = make_reader(guest.account.workspace)
    suspend_workspace(guest.account.workspace, reason="complaints")
    suspended_workspaces.read()
    guest.visit.go(reader.click_path(f"https://shop.example/{'offers/' * 20}"))


def opened(path: str, *, is_signed_in: bool = False) -> Callable[[Guest], None]:
    def open_page(guest: Guest) -> None:
        if is_signed_in:
            guest.sign_in()
        guest.visit.go(path)

    return open_page


def turn_on_second_factor(user: User) -> None:
    assert confirm_enrolment(user, code=current_code(user))


def current_code(user: User) -> str:
    return code_at(begin_enrolment(user), step=int(time.time()) // 30)


# Page → how a guest gets there, and the status of the response.
PAGES: dict[str, tuple[Callable[[Guest], None], int]] = {
    "sign-in": (refused_sign_in, 200),
    "sign-in-throttled": (throttled_sign_in, 429),
    "sign-in-of-staff": (opened("/admin/login/"), 200),
    "sign-in-without-access": (sign_in_without_access, 200),
    "page-of-staff": (opened("/admin/", is_signed_in=True), 200),
    "code": (code, 200),
    "code-throttled": (throttled_code, 429),
    "sign-up": (refused_sign_up, 200),
    "reset-sent": (reset_sent, 200),
    "reset-expired": (opened("/dashboard/reset/new/?account=MQ&token=expired"), 410),
    "new-password": (refused_password, 200),
    "new-password-done": (changed_password, 200),
    "invitation": (invitation, 200),
    "invitation-refused": (refused_invitation, 200),
    "invitation-signed-out": (invitation_of_an_account, 200),
    "invitation-signed-in": (invitation_to_join, 200),
    "invitation-of-another": (invitation_of_another_account, 200),
    "invitation-expired": (opened("/dashboard/invitation/?token=expired"), 410),
    "shared-records": (shared_records, 200),
    "shared-records-expired": (opened("/dashboard/records/?token=expired"), 410),
    "confirmation": (confirmation, 200),
    "confirmation-signed-in": (confirmation_signed_in, 200),
    "confirmation-of-another": (confirmation_of_another_account, 200),
    "confirmation-expired": (opened("/dashboard/proof/?token=expired"), 410),
    "second-factor": (refused_second_factor, 200),
    "second-factor-enabled": (enabled_second_factor, 200),
    "second-factor-of-staff": (second_factor_of_staff, 200),
    "recovery-codes": (recovery_codes, 200),
    "password": (refused_change_of_password, 200),
    "unconfirmed": (unconfirmed_workspace, 200),
    "suspended": (suspended_workspace, 200),
    "403": (page_of_owners, 403),
    "403-form": (refused_form, 403),
    "404": (opened("/dashboard/nothing/", is_signed_in=True), 404),
    "404-signed-out": (opened("/nothing"), 404),
    "404-docs": (opened("/docs/nothing"), 404),
    "405": (opened("/dashboard/test-email/", is_signed_in=True), 405),
    "413": (large_form, 413),
    "500": (internal_error, 500),
    "unsubscribe": (unsubscribe, 200),
    "unsubscribed": (unsubscribed, 200),
    "link-broken": (opened("/t/c/nonsense"), 404),
    "link-suspended": (link_of_a_suspended_sender, 200),
}
