"""User journeys of workspace owners in Chromium, with the real queue processor."""

import asyncio
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from playwright.sync_api import expect

from delivery.transports.relay import inbox_transport
from emails.sending.emails_work import EmailQueueWork
from inbound.inbox import receiver as inbox_receiver
from lib.network.address_guard import Guard
from lib.network.resolver import Resolver
from lib.network.target_urls import UrlRules
from lib.worker.event_loop import network_loop
from lib.worker.processor import QueueProcessor
from tests.conftest import PASSWORD, make_account, make_domain, make_key
from tests.dashboard.browser import sign_in
from tests.domains.conftest import Zone, running_worker
from tests.lib.nameserver import NameServer
from tests.stack.stack import free_port
from tests.webhooks.receiver import Receiver, status
from webhooks.sending.post import Poster
from webhooks.sending.webhooks_work import WebhookQueueWork

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@contextmanager
def inbox() -> Iterator[int]:
    """Run the built-in inbox in the network event loop; yield its port."""
    port = free_port()
    serving = asyncio.run_coroutine_threadsafe(inbox_receiver.serve(port), network_loop())
    wait_for(port)
    yield port
    serving.cancel()


def wait_for(port: int) -> None:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    pytest.fail("the inbox does not listen")


def run_in_thread(work) -> None:
    """Run in a separate thread: the test thread runs playwright's event loop."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001 - reported by the test thread
            failures.append(failure)
        finally:
            connection.close()

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert not failures, failures


def deliver_to_inbox() -> None:
    """Send all due emails to the built-in inbox."""
    with inbox() as port:
        run_in_thread(QueueProcessor(EmailQueueWork(inbox_transport(port=port, ehlo_name="localhost"), sessions=4)).run)


def send_with_curl(base_url: str, curl: str, key: str) -> dict:
    """Send the request of the overview's curl command."""
    body = curl.partition("-d '")[2].rstrip("'\n ")
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{base_url}/v1/emails/send", body.encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.loads(response.read())


def test_from_signing_up_to_reading_the_first_email(visit, live_server):
    page = visit.go("/dashboard/signup/")
    page.get_by_label("Email address").fill("ada@lovelace.example")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Workspace").fill("Analytical Engines")
    page.get_by_role("button", name="Create account").click()
    page.get_by_role("link", name="Create an API key").click()
    page.get_by_label("Name").fill("Shop")
    page.get_by_role("button", name="Create key").click()
    key = page.locator("#created-key").inner_text().strip()
    visit.go("/dashboard/")
    page.get_by_role("link", name="Add a domain").click()
    page.get_by_label("Domain").fill("lovelace.example")
    page.get_by_role("button", name="Add domain").click()
    visit.go("/dashboard/")
    expect(page.locator(".pr-steps .pr-done")).to_have_count(3)

    sent = send_with_curl(live_server.url, page.locator("#curl").inner_text(), key)
    visit.go(f"/dashboard/emails/{sent['id']}/")
    expect(page.locator(".pr-hero")).to_contain_text("queued")
    deliver_to_inbox()
    page.reload()

    expect(page.locator(".pr-hero")).to_contain_text("delivered")
    expect(page.locator(".pr-timeline")).to_contain_text("Delivered")
    expect(page.frame_locator("iframe").get_by_role("heading", name="It works")).to_be_visible()
    visit.go("/dashboard/")
    expect(page.get_by_role("heading", name="Send your first email in four steps")).to_have_count(0)
    expect(page.locator(".pr-of-delivered")).to_contain_text("100.0%")
    assert not visit.complaints


def test_a_domain_is_registered_and_verified(visit, settings):
    settings.RETURN_PATH_DOMAIN = "bounce.postrider.example"
    account = make_account("alice")
    sign_in(visit, account.owner.email)
    page = visit.go("/dashboard/domains/add/")
    page.get_by_label("Domain").fill("mail.example.com")
    page.get_by_role("button", name="Add domain").click()
    with NameServer() as server, running_worker():
        settings.DNS_SERVERS = [server.address]
        page.get_by_role("button", name="Verify now").click()
        expect(page.get_by_text("Some DNS records are missing or incorrect")).to_be_visible()
        publish_shown_records(page, Zone(server))
        page.get_by_role("button", name="Verify now").click()
        expect(page.get_by_text("mail.example.com is verified.")).to_be_visible()

    visit.keep_screenshot("journey-domain")
    expect(page.locator(".pr-record .pr-success")).to_have_count(4)
    assert not visit.complaints


def publish_shown_records(page, zone: Zone) -> None:
    """Publish the records shown on the page in the DNS."""
    for number in range(1, 5):
        record = page.locator(".pr-record").nth(number - 1)
        name = page.locator(f"#name-{number}").inner_text()
        fqdn = "mail.example.com" if name == "@" else f"{name}.mail.example.com"
        kind = record.locator("td").first.inner_text().strip()
        zone.publish({"fqdn": fqdn, "type": kind, "value": page.locator(f"#value-{number}").inner_text()})


def test_a_template_is_written_seen_and_sent_to_many(visit, live_server):
    account = make_account("alice")
    make_domain(account.workspace, "alice.example")
    key = make_key(account.workspace)
    sign_in(visit, account.owner.email)
    page = visit.go("/dashboard/templates/add/")
    page.get_by_label("Name").fill("Receipt")
    page.get_by_label("Alias").fill("receipt")
    page.get_by_label("Subject").fill("Order {{order}}")
    page.get_by_role("textbox", name="HTML").fill("<h1>Hello {{name}}</h1>\n{{#if")
    expect(page.locator("[data-status]")).to_contain_text("line 2, column 1")
    page.get_by_role("textbox", name="HTML").fill("<h1>Hello {{name}}</h1>")
    expect(page.locator("[data-missing]")).to_contain_text("name")
    page.get_by_role("button", name="Data").click()
    page.get_by_role("textbox", name="Sample data").fill('{"name": "Ada", "order": 7}')
    page.get_by_role("button", name="Preview", exact=True).click()
    expect(page.locator("[data-subject]")).to_have_text("Order 7")
    expect(page.frame_locator("iframe").get_by_role("heading", name="Hello Ada")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The template was saved.")).to_be_visible()

    recipients = [{"to": f"{name}@example.com", "templateData": {"name": name, "order": 1}} for name in ("ada", "bo")]
    body = {"from": "hi@alice.example", "templateId": "receipt", "recipients": recipients}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{live_server.url}/v1/emails/batch", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        ids = json.loads(response.read())["ids"]

    visit.go(f"/dashboard/emails/{ids[1]}/")
    expect(page.frame_locator("iframe").get_by_role("heading", name="Hello bo")).to_be_visible()
    assert not visit.complaints


def test_a_webhook_is_tested_and_its_delivery_replayed(visit, settings):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
    sign_in(visit, make_account("alice").owner.email)
    with Receiver() as server:
        server.answer = status(503, body=b"upstream is down")
        page = visit.go("/dashboard/webhooks/add/")
        page.get_by_label("URL").fill(server.url("/hook"))
        page.get_by_role("button", name="Create webhook").click()
        expect(page.locator("#secret")).to_contain_text("whsec_")
        page.get_by_role("link", name="Done").click()
        page.get_by_role("button", name="Send test event").click()
        send_due_events()
        page.get_by_role("link", name="email.").click()
        expect(page.locator(".pr-timeline")).to_contain_text("upstream is down")
        server.answer = status(200)
        page.get_by_role("button", name="Replay").click()
        send_due_events()
        page.reload()

        expect(page.locator(".pr-hero")).to_contain_text("succeeded")
        expect(page.locator(".pr-timeline li")).to_have_count(2)
        assert len(server.received) == 2
        assert server.received[0].body == server.received[1].body
    visit.keep_screenshot("journey-delivery")
    assert not visit.complaints


def send_due_events() -> None:
    """Send all due webhook events."""

    def work() -> None:
        resolver = Resolver([("127.0.0.1", 9)], lifetime_seconds=0.2)
        poster = Poster(UrlRules(guard=Guard(allow_private=True)), resolver=resolver)
        QueueProcessor(WebhookQueueWork(poster, sessions=4)).run()
        asyncio.run_coroutine_threadsafe(poster.close(), network_loop()).result(5)

    run_in_thread(work)
