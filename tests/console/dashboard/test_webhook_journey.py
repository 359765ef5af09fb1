"""A failing endpoint is understood and its events are sent again, in Chromium with the real queue processor."""

import re

import pytest
from playwright.sync_api import expect

from console.dashboard.pages.webhooks import EVENT_GROUPS
from tests.conftest import make_account
from tests.console.dashboard.axe import violations
from tests.console.dashboard.browser import sign_in
from tests.console.dashboard.conftest import make_email
from tests.console.dashboard.queue_runs import send_due_events
from tests.webhooks.conftest import publish_event
from tests.webhooks.receiver import Receiver, status
from webhooks.models import PendingDelivery, Webhook, WebhookDelivery

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_events_are_chosen_in_groups_or_all_at_once(visit):
    sign_in(visit, make_account("alice").owner.email)
    page = visit.go("/dashboard/webhooks/add/")
    boxes, chosen = page.locator("[name=events]"), page.locator("[name=events]:checked")
    sizes = {str(title): len(kinds) for title, kinds in EVENT_GROUPS.items()}
    for button, count in (
        ("All (Recipients)", 3 + sizes["Recipients"]),
        ("All", boxes.count()),
        ("All", 0),
        ("All (Delivery)", sizes["Delivery"]),
    ):
        page.get_by_role("button", name=button, exact=True).click()
        expect(chosen).to_have_count(count)
    assert not violations(page)
    visit.keep_screenshot("webhook-add")
    assert not visit.complaints


def test_a_failing_endpoint_is_understood_and_replayed(visit):
    account = make_account("alice")
    email = make_email(account.workspace, subject="Your receipt")
    sign_in(visit, account.owner.email)
    with Receiver() as server:
        server.answer = status(503, body=b"upstream is down")
        page = visit.go("/dashboard/webhooks/add/")
        page.get_by_label("URL").fill(server.url("/hook"))
        page.get_by_role("button", name="Create webhook").click()
        expect(page.locator("#secret")).to_contain_text("whsec_")
        page.get_by_role("button", name="Ruby").click()
        expect(page.get_by_text("OpenSSL::HMAC").first).to_be_visible()
        assert not violations(page)
        visit.keep_screenshot("webhook-secret")
        page.get_by_role("link", name="Done").click()

        publish_event(account, emailId=email.id)
        send_due_events()
        page.reload()
        expect(page.get_by_text(re.compile("failing since"))).to_be_visible()
        expect(page.get_by_text(re.compile(r"Retrying, 1 of 9, next \d\d:\d\d"))).to_be_visible()
        expect(page.get_by_text("Newest deliveries (1): 0% succeeded")).to_be_visible()
        assert not violations(page)
        visit.keep_screenshot("webhook-failing")

        PendingDelivery.objects.all().delete()
        WebhookDelivery.objects.update(status="exhausted")
        server.answer = status(200)
        page.get_by_role("link", name="Exhausted").click()
        page.get_by_role("link", name="Replay all failed").click()
        page.get_by_role("button", name="Replay").click()
        expect(page.get_by_text("1 event will be sent again.")).to_be_visible()
        send_due_events()
        page.reload()
        expect(page.get_by_text("failing since")).to_have_count(0)

        page.get_by_role("link", name="email.delivered").click()
        page.get_by_text("Request headers").first.click()
        sent = server.received[-1].header("webhook-signature")
        expect(page.locator(".pr-timeline details pre").first).to_contain_text(f"webhook-signature: {sent}")
        assert not violations(page)
        visit.keep_screenshot("webhook-delivery")
        page.get_by_role("link", name=email.id).click()
        expect(page.get_by_role("heading", name="Your receipt").first).to_be_visible()
    assert Webhook.objects.get().failing_since is None
    assert not visit.complaints
