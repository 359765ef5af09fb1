"""Accounts in a real browser: invite, accept, sign in, leave, and two-factor authentication."""

import re
import subprocess
import time

import pytest
from playwright.sync_api import expect

from console.system_mail.models import SystemMail
from core.workspaces.models import Membership
from core.workspaces.second_factor import begin_enrolment, code_at, otpauth_url
from tests.conftest import PASSWORD, make_account
from tests.console.dashboard.browser import Visit
from tests.standards.tools import program

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def sign_in(guest: Visit, email: str) -> None:
    page = guest.go("/dashboard/login/")
    page.get_by_label("Email address").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def link_of(guest: Visit) -> str:
    (url,) = re.findall(r"https?://\S+", SystemMail.objects.latest("created_at").text)
    return url[url.index("/dashboard/") :]


def test_a_member_is_invited_accepts_and_leaves(visit, phone):
    alice = make_account("alice")
    sign_in(visit, alice.owner.email)
    page = visit.page
    page.get_by_role("link", name="Members").click()
    page.get_by_role("link", name="Invite").click()
    page.get_by_label("Email address").fill("grace@hopper.example")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Invitation sent to grace@hopper.example.")).to_be_visible()
    visit.keep_screenshot("members")

    guest = phone.go(link_of(visit))
    expect(guest.get_by_role("heading", name="Join alice")).to_be_visible()
    phone.keep_screenshot("invitation-phone")
    guest.get_by_label("Password").fill(PASSWORD)
    guest.get_by_role("button", name="Create account and join").click()
    expect(guest.get_by_text("You joined alice.")).to_be_visible()

    phone.go("/dashboard/members/")
    phone.keep_screenshot("members-phone")
    guest.get_by_role("link", name="Leave").click()
    guest.get_by_role("button", name="Leave").click()
    expect(guest.get_by_label("Email address")).to_be_visible()
    assert Membership.objects.get().user == alice.owner

    visit.go("/dashboard/audit/")
    expect(page.get_by_text("Member joined")).to_be_visible()
    visit.keep_screenshot("audit")
    assert not visit.complaints
    assert not phone.complaints


def read_qr_code(visit: Visit) -> str:
    """Return the text of the QR code on the page."""
    shot = visit.page.locator(".pr-square").screenshot()
    command = [program("zbarimg", package="zbar-tools"), "--quiet", "--raw", "-"]
    return subprocess.run(command, input=shot, capture_output=True, check=True, timeout=30).stdout.decode().strip()


def test_two_factor_authentication_is_turned_on_and_required(visit, phone):
    alice = make_account("alice")
    sign_in(visit, alice.owner.email)
    page = visit.go("/dashboard/security/")
    assert read_qr_code(visit) == otpauth_url(alice.owner, secret=begin_enrolment(alice.owner))
    page.get_by_label("Code from the app").fill(code_at(begin_enrolment(alice.owner), step=int(time.time()) // 30))
    page.get_by_label("Your password").fill(PASSWORD)
    visit.keep_screenshot("security")
    page.get_by_role("button", name="Turn on").click()
    expect(page.locator("#recovery-codes")).to_have_text(re.compile(r"^([a-z2-7]{4}(-[a-z2-7]{4}){3}\s*){10}$"))
    visit.keep_screenshot("recovery-codes")

    sign_in(phone, alice.owner.email)
    expect(phone.page.get_by_role("heading", name="Two-factor authentication")).to_be_visible()
    phone.keep_screenshot("code-phone")
    phone.page.get_by_label("Code").fill(code_at(begin_enrolment(alice.owner), step=int(time.time()) // 30 + 1))
    phone.page.keyboard.press("Enter")
    expect(phone.page.get_by_role("heading", name="Send your first email in four steps")).to_be_visible()
    phone.go("/dashboard/security/")
    phone.keep_screenshot("security-phone")
    assert not visit.complaints
    assert not phone.complaints
