from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils.html import strip_tags

from dashboard.auth import throttle
from emails.models import Content, Email, Recipient
from events.models import Event
from inbound.inbox.models import CaughtMail
from tests.conftest import Account
from tests.dashboard.browser import CHROMIUM, Visit, chromium
from workspaces.models import User, Workspace


def make_email(workspace: Workspace, *, subject: str = "Hello", html: str = "<p>Hi</p>", **fields: Any) -> Email:
    values = {
        "workspace": workspace,
        "content": Content.objects.create(html=html, text="Hi"),
        "sender": "Alice <hi@alice.example>",
        "from_domain": "alice.example",
        "to": ["ada@example.com"],
        "cc": [],
        "bcc": [],
        "subject": subject,
        "tags": [],
        "created_at": datetime.now(UTC),
        "status": "delivered",
        **fields,
    }
    email = Email.objects.create(**values)
    recipient = Recipient.objects.create(
        email=email, kind="to", position=0, address="ada@example.com", state=email.status
    )
    for kind, payload in (("queued", {}), ("delivered", {"to": recipient.address, "code": 250, "message": "Caught"})):
        Event.objects.create(email=email, recipient=recipient, kind=kind, payload=payload, created_at=email.created_at)
    return email


def make_caught(workspace: Workspace | None, source: bytes | None = None, **fields: Any) -> CaughtMail:
    message = EmailMessage(policy=SMTP)
    message["From"], message["To"] = "Alice <hi@alice.example>", "ada@example.com"
    # A given source has its own headers; not every subject of a row is valid in a header.
    message["Subject"] = "Caught" if source else fields.get("subject", "Caught")
    message.set_content("Hello in text")
    message.add_alternative("<h1>Hello in HTML</h1>", subtype="html")
    values = {
        "recipient": "ada@example.com",
        "sender": "Alice <hi@alice.example>",
        "subject": "Caught",
        "source": message.as_bytes() if source is None else source,
        **fields,
    }
    return CaughtMail.objects.create(workspace=workspace, **values)


def shown_text(response: Any) -> str:
    """Return the text of a page without tags and repeated spaces."""
    return " ".join(strip_tags(response.content.decode()).split())


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def owner(alice: Account) -> Client:
    """Alice's browser, signed in."""
    return signed_in(alice.owner)


@pytest.fixture
def staff(db: None) -> Client:
    return signed_in(User.objects.create_superuser("staff@postrider.example", "correct horse battery"))


@pytest.fixture(autouse=True)
def _fresh_throttles(monkeypatch: Any) -> None:
    # Each test starts with full buckets.
    monkeypatch.setattr(throttle, "PREFIX", f"test:{uuid4()}:")


@pytest.fixture(autouse=True)
def _inbox_transport(settings: Any) -> None:
    settings.DELIVERY_TRANSPORT = "inbox"
    settings.SIGNUP = "open"


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM.exists():
        pytest.fail(f"The browser tests need {CHROMIUM}; on Debian, apt-get install chromium brings it.")
    # Django refuses the database to a thread with a running event loop, and playwright keeps one.
    with pytest.MonkeyPatch.context() as patch, chromium() as opened:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield opened


@pytest.fixture
def visit(browser, live_server):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield Visit(context, live_server.url)
    context.close()


@pytest.fixture
def phone(browser, live_server):
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    yield Visit(context, live_server.url)
    context.close()


@pytest.fixture(
    params=[(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")], ids=lambda look: f"{look[0]}-{look[1]}"
)
def look(request, browser, live_server):
    """A desktop and a phone, each in light and dark mode, for screenshots; `look.name` names the combination."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    visit = Visit(context, live_server.url)
    visit.name = f"{width}-{scheme}"
    yield visit
    context.close()
