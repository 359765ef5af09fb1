"""Received email in Chromium: files that a browser would run, and the pages on every screen."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from core.workspaces.models import User
from receiving.models import InboundRoute
from receiving.states import NOT_READ
from tests.conftest import make_account, make_domain
from tests.console.dashboard.axe import page_problems, violations
from tests.console.dashboard.browser import listener, looks_in, sign_in
from tests.console.dashboard.conftest import make_email, make_received, verdicts
from tests.console.dashboard.pages.test_received_answers import PNG
from tests.console.dashboard.sample_programs import wait_for_the_end_of_requests
from tests.console.dashboard.scenario import answer_to
from tests.receiving.builders import receive_for
from webhooks.services import create_webhook

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SCRIPT = "<script>alert('run'); fetch('{tracker}/run')</script>"
# Media type → a file with a script that a browser would run if it opened the file.
ACTIVE_FILES = {
    "text/html": f"<!DOCTYPE html><h1>x</h1>{SCRIPT}",
    "image/svg+xml": f'<svg xmlns="http://www.w3.org/2000/svg">{SCRIPT}</svg>',
    "application/xml": f'<x xmlns:h="http://www.w3.org/1999/xhtml"><h:script>alert(1)</h:script>{SCRIPT}</x>',
    "text/xml": '<?xml version="1.0"?><?xml-stylesheet href="{tracker}/sheet"?><x/>',
    "application/xhtml+xml": f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{SCRIPT}</body></html>',
    "text/plain": f"<!DOCTYPE html>{SCRIPT}",
    "application/pdf": "%PDF-1.4 not a document",
    "text/javascript": "alert('run')",
}


@pytest.fixture(autouse=True)
def _receiving(settings):
    settings.RECEIVING_DOMAIN, settings.RECEIVING_MX = "", ["mx.demo.example"]


def test_a_file_is_saved_and_never_run_on_our_host(visit):
    account = make_account("alice")
    with listener() as (tracker, requested):
        files = [
            {"filename": f"{number}.html", "contentType": kind, "data": text.replace("{tracker}", tracker).encode()}
            for number, (kind, text) in enumerate(ACTIVE_FILES.items())
        ]
        email = make_received(account.workspace, attachments=files)
        sign_in(visit, account.owner.email)
        page = visit.go(f"/dashboard/received/{email.id}/")
        for file in files:
            with page.expect_download() as saved:
                page.get_by_role("link", name=file["filename"]).click()
            assert saved.value.path().read_bytes() == file["data"], file
        # An embedding page of ours, such as one with injected markup, cannot show them either.
        page.evaluate(
            """(addresses) => Promise.all(addresses.flatMap((address) =>
                ['iframe', 'object', 'embed', 'script', 'img'].map((name) => {
                    const element = document.createElement(name)
                    element[name === 'object' ? 'data' : 'src'] = address
                    document.body.append(element)
                    return new Promise((done) => setTimeout(done, 300))
                })))""",
            [f"/dashboard/received/{email.id}/attachment/?position={number}" for number in range(len(files))],
        )
        page.wait_for_load_state("networkidle")

    assert not requested
    assert not visit.dialogs
    visit.go("/dashboard/")
    wait_for_the_end_of_requests()


def test_files_are_shown_on_request_and_an_answer_joins_the_conversation(visit):
    account = make_account("alice")
    receive_for(make_domain(account.workspace, "alice.example"))
    files = [
        {"filename": "logo.png", "contentType": "image/png", "data": PNG},
        {"filename": "fake.png", "contentType": "image/png", "data": f"<html>{SCRIPT}".encode()},
        {"filename": "orders.csv", "contentType": "text/csv", "data": b"id;name\r\n1;<b>Ada</b>\r\n"},
    ]
    email = make_received(account.workspace, attachments=files)
    sign_in(visit, account.owner.email)
    page = visit.go(f"/dashboard/received/{email.id}/")
    picture = page.get_by_role("img", name="logo.png")
    expect(picture).to_be_hidden()
    for name in ("logo.png", "fake.png", "orders.csv"):
        button = page.get_by_role("button", name=f"Preview {name}")
        expect(button).to_have_attribute("aria-expanded", "false")
        button.click()
        expect(button).to_have_attribute("aria-expanded", "true")
    page.wait_for_function("document.querySelector('img[alt=\"logo.png\"]').naturalWidth === 1")
    assert page.evaluate("document.querySelector('img[alt=\"fake.png\"]').naturalWidth") == 0
    expect(page.get_by_text("1;<b>Ada</b>")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Preview logo.png").click()
    expect(picture).to_be_hidden()

    page.get_by_role("link", name="Answer", exact=True).click()
    page.get_by_label("Text").fill("It is on its way.")
    page.get_by_role("button", name="Send answer").click()
    expect(page.get_by_text("The answer to ada@example.com was accepted.")).to_be_visible()
    expect(page.locator("#conversation li")).to_have_count(2)
    page.locator("#conversation").get_by_role("link").click()
    expect(page.get_by_role("heading", name="Re: Where is it?", level=2)).to_be_visible()
    assert not visit.dialogs
    visit.go("/dashboard/")
    wait_for_the_end_of_requests()


@pytest.mark.parametrize(("look", "language"), looks_in("de", "en"), indirect=["look"])
def test_the_pages_fit_every_screen(look, language):
    account = make_account("alice", plan="pro")
    workspace = account.workspace
    domain = receive_for(make_domain(workspace, "in.alice.example"))
    hook, _ = create_webhook(workspace, url="https://shop.example/hooks/received", events=["received"])
    routes = [
        InboundRoute.objects.create(
            workspace=workspace, name=name, match=match, literals=len(match), domain=domain.name, action=action
        )
        for name, match, action in (
            ("Support", "support*", "deliver"),
            ("Old addresses of the garden shop and its friends " * 2, "?ld*", "reject"),
            ("Newsletter answers", "news", "discard"),
        )
    ]
    sent = make_email(workspace, subject="Your order 4711")
    now = datetime.now(UTC)
    answer = {**answer_to(sent), "route_id": routes[0].id, "tag": "4711"}
    reply = make_received(
        workspace,
        subject="Re: Your order 4711",
        html="<p>Hello,</p><p>where is my order?</p><blockquote>Thank you!</blockquote>",
        attachments=[
            {"filename": "Rechnung für den Garten.pdf", "contentType": "application/pdf"},
            {"filename": "foto.jpg", "contentType": "image/jpeg", "inline": True},
        ],
        spam={"score": 0.4, "threshold": 15, "isSpam": False, "symbols": []},
        recipient="support+4711@in.alice.example",
        **answer,
    )
    make_received(workspace, subject="Re: Your order 4711", **answer, received_at=now - timedelta(hours=2))
    forged = {"status": "blocked", "blocked_reason": "not_authenticated", "sender": "ceo@bank.example"}
    blocked = make_received(
        workspace,
        subject="Urgent payment",
        html="",
        authentication=verdicts("fail", domain="bank.example", policy="reject"),
        received_at=now - timedelta(days=1),
        recipient="support@in.alice.example",
        **forged,
    )
    unread = {"status": "stored", "authentication": None, "text": "", "html": "", "subject": "", "reply_text": None}
    stored = make_received(workspace, **unread, sender="", recipient=f"r-{'x' * 53}@in.alice.example")
    long = {"subject": "W" * 120, "sender": f"{'s' * 60}@example.com", "is_test": True}
    unreadable = make_received(workspace, status="unreadable", parse_errors=[NOT_READ], **long)
    hook.save()
    sign_in(look, account.owner.email)
    User.objects.update(language=language)
    problems = []
    pages = {
        "received": "received/",
        "search": "received/?search=zzz",
        "filters": f"received/?routeId={routes[0].id}",
        "reply": f"received/{reply.id}/",
        "answer": f"received/{reply.id}/answer/",
        "forward": f"received/{reply.id}/forward/",
        "blocked": f"received/{blocked.id}/",
        "stored": f"received/{stored.id}/",
        "release": f"received/{blocked.id}/release/",
        "unreadable": f"received/{unreadable.id}/",
        "reread": f"received/{unreadable.id}/reread/",
        "routes": "routes/",
        "question": "routes/?recipient=support%2B4711@in.alice.example",
        "refused": "routes/?recipient=old@in.alice.example",
        "route": f"routes/{routes[0].id}/",
        "blocks": "blocks/",
        "block": "blocks/add/",
        "domain": f"domains/{domain.domain_id}/",
        "switch": f"domains/{domain.domain_id}/receiving/",
        "sent": f"emails/{sent.id}/",
        "usage": "usage/",
    }
    for name, path in pages.items():
        page = look.go(f"/dashboard/{path}")
        page.wait_for_function("window.Alpine !== undefined")
        problems += page_problems(look, f"receiving-{language}-{name}")
    assert problems == []
    assert not look.complaints
