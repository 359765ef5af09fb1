"""Suppressions, audit log, inbox and API keys in Chromium."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from core.lib.ids import new_id
from core.request_log.models import ApiRequest
from suppressions.models import Suppression
from suppressions.services import suppress_addresses
from tests.conftest import make_account, make_key
from tests.console.dashboard.axe import violations
from tests.console.dashboard.browser import sign_in
from tests.console.dashboard.conftest import make_caught

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_several_suppressions_are_removed_at_once(phone):
    account = make_account("alice")
    addresses = [f"{name}@example.com" for name in ("ada", "bo", "cy")]
    suppress_addresses(account.workspace, addresses=addresses, reason="bounce")
    sign_in(phone, account.owner.email)
    page = phone.go("/dashboard/suppressions/")
    remove = page.get_by_role("button", name="Remove selected")
    expect(remove).to_be_hidden()
    page.get_by_label("ada@example.com", exact=True).check()
    page.get_by_label("bo@example.com", exact=True).check()
    assert not violations(page)
    phone.keep_screenshot("suppressions-selected")
    remove.click()
    page.get_by_role("button", name="Remove").click()

    expect(page.get_by_text("2 addresses were removed.")).to_be_visible()
    assert list(Suppression.objects.values_list("email", flat=True)) == ["cy@example.com"]
    assert not phone.complaints


def test_the_inbox_is_searched_checked_and_emptied(visit):
    account = make_account("alice")
    source = b"Subject: Reset\r\nContent-Type: text/html\r\n\r\n<form><p style='display:flex'>Hi</p></form>"
    make_caught(account.workspace, source, subject="Reset your password")
    make_caught(account.workspace, subject="Welcome")
    sign_in(visit, account.owner.email)
    page = visit.go("/dashboard/inbox/")
    page.get_by_role("link", name="Welcome").click()
    expect(page.frame_locator("iframe").get_by_role("heading", name="Hello in HTML")).to_be_visible()
    page.get_by_role("button", name="Headers").click()
    expect(page.get_by_role("rowheader", name="MIME-Version")).to_be_visible()
    page.get_by_role("button", name="Source").click()
    expect(page.get_by_text("Content-Type: multipart/alternative")).to_be_visible()
    page = visit.go("/dashboard/inbox/")
    page.get_by_role("searchbox").fill("RESET")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Reset your password").click()
    page.get_by_role("button", name="Phone").click()
    expect(page.get_by_role("button", name="Phone")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="HTML check (3)").click()
    expect(page.get_by_text("Forms do not work in most mail clients.")).to_be_visible()
    assert not violations(page)
    visit.keep_screenshot("inbox-check")
    visit.go("/dashboard/inbox/")
    page.get_by_role("link", name="Delete all").click()
    page.get_by_role("button", name="Delete all").click()

    expect(page.get_by_text("2 emails were deleted.")).to_be_visible()
    expect(page.get_by_role("heading", name="No emails yet")).to_be_visible()
    assert not visit.complaints


def test_a_key_is_created_with_a_lifetime_and_its_code_copied(visit):
    sign_in(visit, make_account("alice").owner.email)
    page = visit.go("/dashboard/keys/add/")
    time = page.get_by_label("Time")
    expect(time).to_be_hidden()
    page.get_by_label("Expires").select_option("custom")
    expect(time).to_be_visible()
    page.get_by_label("Expires").select_option("90")
    page.get_by_label("Name").fill("Shop")
    assert not violations(page)
    page.get_by_role("button", name="Create key").click()
    page.get_by_role("button", name="Django").click()
    key = page.locator("#created-key").inner_text().strip()

    expect(page.get_by_text(re.compile(f'EMAIL_HOST_PASSWORD = "{key}"'))).to_be_visible()
    assert not violations(page)
    visit.keep_screenshot("key-code")
    assert not visit.complaints


def test_a_request_is_one_line_on_a_desktop_and_a_card_with_its_id_on_a_phone(visit, phone):
    account = make_account("alice")
    make_key(account.workspace)
    path = f"/v1/templates/{new_id('tpl_')}/versions/{new_id('tpv_')}"
    key = account.workspace.api_keys.get()
    row = ApiRequest.objects.create(
        id=new_id("req_"), workspace_id=account.workspace.id, key_id=key.id, method="PATCH", path=path, status=422,
        code="validation_error", milliseconds=1234, created_at=timezone.now(),
    )  # fmt: skip
    sign_in(visit, account.owner.email)
    page = visit.go("/dashboard/requests/")
    page.set_viewport_size({"width": 1280, "height": 800})

    assert page.locator("tbody tr").bounding_box()["height"] < 48
    assert page.get_by_title(f"PATCH {path}").is_visible()
    assert not visit.is_wider_than_window()
    assert not violations(page)
    page.get_by_role("button", name="Copy the request ID").click()
    expect(page.get_by_role("button", name=re.compile("Copied|Press Ctrl"))).to_be_visible()
    assert not violations(page)

    sign_in(phone, account.owner.email)
    page = phone.go("/dashboard/requests/")
    expect(page.get_by_text(row.id)).to_be_visible()
    expect(page.get_by_text(f"PATCH {path}")).to_be_visible()
    assert not phone.is_wider_than_window()
    assert not violations(page)
    assert not visit.complaints + phone.complaints
