"""Journeys through the list and the page of emails in Chromium, with the real queue processor."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from emails.models import Attachment, Email, Recipient
from events.models import Event
from interfaces.inbound.inbox.models import CaughtMail
from suppressions.services import suppress_address
from tests.conftest import make_domain
from tests.console.dashboard.axe import page_problems, violations
from tests.console.dashboard.browser import sign_in
from tests.console.dashboard.conftest import make_email
from tests.console.dashboard.queue_runs import deliver_to_inbox, run_in_thread
from tests.console.dashboard.scenario import fill_workspace
from tests.emails.builders import accept

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TALL = "<body style='margin: 0'><h1>Your receipt</h1><div style='height: 1800px'></div><p>The end</p></body>"


def mixed_email(workspace) -> Email:
    """Create an email to three recipients, of which one bounced and is suppressed."""
    email = make_email(workspace, subject="Team news", to=["ada@example.com", "bo@example.com", "gone@example.com"])
    for position, (address, state) in enumerate((("bo@example.com", "opened"), ("gone@example.com", "bounced")), 1):
        Recipient.objects.create(email=email, kind="to", position=position, address=address, state=state)
    suppress_address(workspace, address="gone@example.com", reason="bounce")
    return email


def test_an_owner_finds_an_email_and_exports_the_list(visit, account, tmp_path):
    for number in range(3):
        make_email(account.workspace, subject=f"Receipt {number}", tags=["receipt"], sender="pay@alice.example")
    complained = make_email(account.workspace, subject="Newsletter", tags=["news"])
    Event.objects.create(email=complained, kind="complained", payload={}, created_at=complained.created_at)
    sign_in(visit, account.owner.email)

    page = visit.go("/dashboard/emails/")
    assert page.locator("#tags option").evaluate_all("all => all.map(one => one.value)") == ["news", "receipt"]
    page.locator("[name=tag]").fill("receipt")
    page.locator("[name=sender]").fill("PAY@")
    page.locator("[name=sender]").blur()
    # The filters apply at once, and are in the URL.
    expect(page.locator("#results [role=status]")).to_contain_text("3 emails")
    expect(page).to_have_url(f"{visit.base_url}/dashboard/emails/?tag=receipt&sender=PAY%40")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export").click()
    path = tmp_path / "emails.csv"
    download.value.save_as(path)
    rows = list(csv.DictReader(Path(path).read_text().splitlines()))
    assert {row["subject"] for row in rows} == {"Receipt 0", "Receipt 1", "Receipt 2"}

    page.get_by_role("link", name="Clear").click()
    page.locator("[name=event]").select_option("complained")
    expect(page.locator(".pr-table tbody tr")).to_have_count(1)
    # The whole row opens the panel.
    page.locator(".pr-table tbody .pr-when").click()
    expect(page.locator("#panel h2")).to_have_text("Newsletter")
    page.locator("#panel").get_by_role("link", name="Open").click()
    expect(page.locator(".pr-hero h2")).to_have_text("Newsletter")
    assert not visit.complaints


def test_an_owner_walks_through_the_list_with_the_keyboard(visit, account):
    for hours, subject in enumerate(("The first", "The second", "The third")):
        make_email(account.workspace, subject=subject, created_at=datetime.now(UTC) - timedelta(hours=hours))
    sign_in(visit, account.owner.email)

    page = visit.go("/dashboard/emails/")
    panel = page.locator("#panel")
    expect(panel).to_be_hidden()
    page.keyboard.press("j")
    expect(panel.locator("h2")).to_have_text("The first")
    expect(panel.get_by_role("heading", name="Timeline")).to_be_visible()
    page.keyboard.press("j")
    expect(panel.locator("h2")).to_have_text("The second")
    assert not violations(page)
    visit.keep_screenshot("emails-panel")
    page.keyboard.press("k")
    expect(panel.locator("h2")).to_have_text("The first")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.get_by_role("link", name="The first")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".pr-hero h2")).to_have_text("The first")
    assert not visit.complaints


def test_a_row_is_a_link_on_a_phone(phone, account):
    make_email(account.workspace, subject="The first")
    sign_in(phone, account.owner.email)

    page = phone.go("/dashboard/emails/")
    page.locator(".pr-table tbody .pr-when").click(force=True)
    expect(page.locator(".pr-hero h2")).to_have_text("The first")
    assert not phone.complaints


def test_an_owner_chooses_columns_and_acts_on_several_emails(visit, account):
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    make_domain(account.workspace, "alice.example")
    for number in range(3):
        address = f"user{number}@example.com"
        run_in_thread(lambda address=address: accept(account.workspace, address, scheduled_for=tomorrow))
    sign_in(visit, account.owner.email)

    page = visit.go("/dashboard/emails/")
    page.locator(".pr-menu summary").click()
    assert not violations(page)
    page.get_by_label("Tags").uncheck()
    page.get_by_role("checkbox", name="Sender").check()
    page.get_by_label("50").check()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("columnheader", name="Sender")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Tags")).to_be_hidden()

    expect(page.get_by_role("button", name="Cancel emails")).to_be_hidden()
    for place in (0, 1):
        page.locator("[name=selected]").nth(place).check()
    expect(page.get_by_text("2 selected", exact=True)).to_be_visible()
    assert not violations(page)
    visit.keep_screenshot("emails-selected")
    page.get_by_role("button", name="Cancel emails").click()
    page.get_by_role("button", name="Cancel emails").click()

    expect(page.get_by_text("2 emails were cancelled.")).to_be_visible()
    assert sorted(Email.objects.values_list("status", flat=True)) == ["cancelled", "cancelled", "scheduled"]
    assert not visit.complaints


def test_an_owner_reads_an_email_as_it_was_sent(visit, account):
    make_domain(account.workspace, "alice.example")
    make_email(account.workspace, subject="The one before", created_at=datetime.now(UTC) - timedelta(hours=1))
    run_in_thread(lambda: accept(account.workspace, "ada@example.com"))
    email = Email.objects.get(subject="s")
    Attachment.objects.create(
        content=email.content, position=0, filename="bill.txt", content_type="text/plain", size=5, data=b"5 EUR"
    )
    deliver_to_inbox()
    sign_in(visit, account.owner.email)

    page = visit.go(f"/dashboard/emails/{email.id}/")
    page.get_by_role("button", name="Headers").click()
    expect(page.get_by_role("rowheader", name="DKIM-Signature")).to_be_visible()
    page.get_by_role("button", name="Raw").click()
    expect(page.locator("#message pre")).to_contain_text("Content-Disposition: attachment")
    with page.expect_download() as download:
        page.get_by_role("button", name=".eml").click()
    caught = bytes(CaughtMail.objects.get().source)
    # The inbox adds its own lines before the message.
    assert caught.endswith(Path(download.value.path()).read_bytes().rstrip(b"\r\n") + b"\r\n")
    with page.expect_download() as download:
        page.get_by_role("link", name="bill.txt").click()
    assert Path(download.value.path()).read_bytes() == b"5 EUR"

    page.get_by_role("link", name="Older email").click()
    expect(page.locator(".pr-hero h2")).to_have_text("The one before")
    page.get_by_role("link", name="Newer email").click()
    expect(page.locator(".pr-hero h2")).to_have_text("s")
    assert not visit.complaints


def test_a_preview_is_as_high_as_its_content_and_has_the_width_of_a_phone(visit, account):
    email = make_email(account.workspace, html=TALL)
    sign_in(visit, account.owner.email)

    page = visit.go(f"/dashboard/emails/{email.id}/")
    frame = page.locator("iframe")
    page.wait_for_function("document.querySelector('iframe').clientHeight > 1800")
    page.get_by_role("button", name="Phone").click()
    page.wait_for_function("document.querySelector('iframe').clientWidth === 375")
    expect(page.get_by_role("button", name="Phone")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Desktop").click()
    page.wait_for_function("document.querySelector('iframe').clientWidth > 500")
    assert frame.bounding_box()["height"] < 2200
    assert not visit.complaints


def test_the_pages_of_emails_look_right(look, account):
    objects = fill_workspace(account)
    mixed = mixed_email(account.workspace)
    scheduled = Email.objects.filter(status="scheduled").first()
    Email.objects.filter(id=scheduled.id).update(scheduled_for=datetime.now(UTC) + timedelta(days=1))
    sign_in(look, account.owner.email)
    problems = []

    def check(name: str) -> None:
        problems.extend(page_problems(look, f"emails-{name}"))

    look.go("/dashboard/emails/")
    check("list")
    look.go("/dashboard/emails/?tag=shop")
    check("filtered")
    page = look.go(f"/dashboard/emails/{objects['emails_email'].id}/")
    page.wait_for_function("document.querySelector('iframe').clientHeight < 400")
    check("bounced")
    for name in ("HTML", "Headers", "Raw"):
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.locator(".pr-tabs [aria-current=true]")).to_have_text(name)
        if name != "HTML":
            expect(page.locator("#message table")).to_be_attached()
        check(name.lower())
    look.go(f"/dashboard/emails/{mixed.id}/").get_by_role("button", name="Phone").click()
    check("mixed")
    page.get_by_role("button", name="Raw", exact=True).click()
    page.get_by_label("Message to").select_option("gone@example.com")
    expect(page.locator("#message pre")).to_contain_text("To: ada@example.com, bo@example.com, gone@example.com")
    check("message")
    look.go(f"/dashboard/emails/{scheduled.id}/schedule/")
    check("schedule")

    problems += look.complaints
    assert not problems, "\n".join(problems)
