"""Pages that refresh while they are visible, in Chromium, with the real queue processor."""

import pytest
from playwright.sync_api import expect

from emails.models import Email
from tests.conftest import make_domain
from tests.console.dashboard.axe import violations
from tests.console.dashboard.browser import sign_in
from tests.console.dashboard.conftest import make_caught, make_email
from tests.console.dashboard.queue_runs import deliver_to_inbox, run_in_thread
from tests.emails.builders import accept

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# More than a few refreshes on a loaded machine.
PATIENCE = 60_000


def test_an_email_becomes_delivered_while_its_owner_watches(visit, account):
    make_domain(account.workspace, "alice.example")
    run_in_thread(lambda: accept(account.workspace, "ada@example.com"))
    sign_in(visit, account.owner.email)
    page = visit.go(f"/dashboard/emails/{Email.objects.get().id}/")
    page.get_by_role("button", name="Headers").click()
    expect(page.get_by_role("rowheader", name="DKIM-Signature")).to_be_visible()
    page.evaluate("document.querySelector('#message').dataset.same = 'yes'")

    deliver_to_inbox()

    expect(page.locator("#state")).to_contain_text("delivered", timeout=PATIENCE)
    expect(page.locator("#timeline")).to_contain_text("Delivered")
    # The rest of the page stays as it is.
    expect(page.get_by_role("button", name="Headers")).to_have_attribute("aria-current", "true")
    expect(page.locator("#message[data-same]")).to_be_visible()
    assert not violations(page)
    assert not visit.complaints


def test_a_list_keeps_the_focus_and_the_text_of_a_field(visit, account):
    first = make_email(account.workspace, subject="The first")
    sign_in(visit, account.owner.email)
    page = visit.go("/dashboard/emails/")
    page.locator(f"#email-{first.id}").focus()

    make_email(account.workspace, subject="The second")

    expect(page.get_by_role("link", name="The second")).to_be_visible(timeout=PATIENCE)
    expect(page.locator(f"#email-{first.id}")).to_be_focused()

    # The filter applies when the field is left.
    page.get_by_label("Recipient or subject").fill("half a wo")
    make_email(account.workspace, subject="The third")

    expect(page.get_by_role("link", name="The third")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_label("Recipient or subject")).to_have_value("half a wo")
    assert not visit.complaints


def test_no_page_refreshes_while_it_is_hidden_or_text_is_selected(visit, account):
    make_email(account.workspace, subject="The first")
    sign_in(visit, account.owner.email)
    page = visit.go("/dashboard/emails/")

    assert page.evaluate("mayRefresh()") is True
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.pr-table'))")
    assert page.evaluate("mayRefresh()") is False
    page.evaluate("getSelection().removeAllRanges()")
    page.evaluate("Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })")
    assert page.evaluate("mayRefresh()") is False
    page.evaluate("delete document.visibilityState")
    with page.expect_request(lambda request: "x-page-version" in request.headers, timeout=PATIENCE):
        pass


def test_the_inbox_and_the_overview_show_new_emails(visit, account):
    make_email(account.workspace, subject="The first")
    sign_in(visit, account.owner.email)
    page = visit.go("/dashboard/inbox/")
    make_caught(account.workspace, subject="Just caught")
    expect(page.get_by_role("link", name="Just caught")).to_be_visible(timeout=PATIENCE)

    make_domain(account.workspace, "alice.example")
    page = visit.go("/dashboard/")
    total = page.locator("#totals .pr-metric").first
    expect(total).to_have_text("0")
    run_in_thread(lambda: accept(account.workspace, "ada@example.com", count=3))
    expect(total).to_have_text("3", timeout=PATIENCE)
    page.wait_for_function("Chart.getChart(document.querySelector('#charts canvas')) !== undefined")
    assert not visit.complaints
