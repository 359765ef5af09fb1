import csv
import io
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import strip_tags

import config.urls  # noqa: F401 - registers the pages of both sites
from console.dashboard.auth import throttle
from console.dashboard.auth.session_policy import LINK_KEY
from core.lib.ids import new_id
from core.workspaces.models import User, Workspace
from emails.listing import pages
from emails.listing.pages import Effort
from emails.models import Content, Email, Recipient
from events.models import Event
from interfaces.inbound.inbox.models import CaughtMail
from receiving import content
from receiving.models import Message, ReceivedEmail
from tests.conftest import Account, make_account
from tests.console.dashboard.browser import LOOKS, chromium, visited


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
        Event.objects.create(
            workspace_id=workspace.id,
            email=email,
            recipient=recipient,
            kind=kind,
            payload=payload,
            created_at=email.created_at,
        )
    return email


@pytest.fixture
def compare_newest(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the list compare at most a number of the newest emails."""

    def limit(count: int) -> None:
        monkeypatch.setattr(pages, "SAMPLED", 1)
        monkeypatch.setattr(pages, "FREQUENT", 1)
        monkeypatch.setattr(pages, "PAGE_EFFORT", Effort(count, count, index_milliseconds=10_000))

    return limit


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


# The columns of make_received that belong to the message; all others are those of the received email.
SHARED_COLUMNS = {"subject", "sender", "size", "is_test", "received_at"}
MESSAGE_COLUMNS = {field.attname for field in Message._meta.fields} - SHARED_COLUMNS
RECEIVED = b"From: Ada <ada@example.com>\r\nSubject: Where is it?\r\n\r\nWhere is my order?\r\n"


def verdicts(result: str, *, domain: str = "example.com", policy: str | None = None) -> dict[str, Any]:
    """Return the verdicts about a message. result: of all checks."""
    return {
        "result": result,
        "spf": {"result": result, "domain": domain},
        "dkim": [{"result": result, "domain": domain, "selector": "s1"}],
        "dmarc": {"result": result if policy else "none", "policy": policy, "domain": domain},
        "arc": {"result": "none"},
    }


def make_received(
    workspace: Workspace, source: bytes = RECEIVED, *, attachments: Sequence[dict[str, Any]] = (), **fields: Any
) -> ReceivedEmail:
    """Create a received email as a worker records it. attachments: their fields; data: their bytes."""
    columns: dict[str, Any] = {
        "envelope_from": "ada@example.com",
        "remote_ip": "192.0.2.7",
        "helo": "mx.example.com",
        "tls": "TLSv1.3",
        "trace": "Received: from mx.example.com by mx.demo.example (Postrider) with ESMTPS\r\n",
        "addresses": {"from": [{"email": "ada@example.com", "name": "Ada"}], "to": [], "cc": [], "replyTo": []},
        "text": "Where is my order?\n\n> Thank you!",
        "reply_text": "Where is my order?",
        "html": "<h1>Where is my order?</h1>",
        "message_id": "<one@example.com>",
        "headers": [["From", "Ada <ada@example.com>"], ["Subject", "Where is it?"]],
        "authentication": verdicts("pass", policy="reject"),
        "read_at": datetime.now(UTC),
        **{name: value for name, value in fields.items() if name in MESSAGE_COLUMNS},
    }
    entries = []
    for attachment in attachments:
        data = attachment.get("data", b"a file")
        entry = {"id": new_id("att_"), "filename": "a.txt", "contentType": "text/plain", "contentId": None}
        entry |= {"inline": False, "method": None, "sha256": "", **attachment}
        entry |= {"size": len(data), "start": len(source), "end": len(source) + len(data), "encoding": "binary"}
        entry.pop("data", None)
        source += data
        entries.append(entry)
    values = {
        "recipient": "support@alice.example",
        "sender": "ada@example.com",
        "subject": "Where is it?",
        "status": "processed",
        "store_days": 7,
        "expires_at": datetime.now(UTC) + timedelta(days=7),
        **{name: value for name, value in fields.items() if name not in MESSAGE_COLUMNS},
    }
    message = Message.objects.create(
        content_id=content.put([source])[0], sha256=b"", size=len(source), attachments=entries, **columns
    )
    return ReceivedEmail.objects.create(workspace=workspace, message=message, size=len(source), **values)


def count_queries(call: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as queries:
        call()
    return len(queries)


def csv_rows(response: Any) -> list[dict[str, str]]:
    """Return the rows of an export by the names of their columns."""
    return list(csv.DictReader(io.StringIO(b"".join(response).decode(), newline="")))


def shown_text(response: Any) -> str:
    """Return the text of a page without tags and repeated spaces."""
    return " ".join(strip_tags(response.content.decode()).split())


def signed_in(user: User) -> Client:
    """Return a browser with a session that began without a password, so that it goes on with PASSWORDS=off."""
    client = Client()
    begin_session(client, user)
    return client


def begin_session(client: Client, user: User) -> None:
    client.force_login(user)
    session = client.session
    session[LINK_KEY] = True
    session.save()


@pytest.fixture
def account(db: None) -> Account:
    """Alice's workspace with a plan that limits it, for browsers."""
    return make_account("alice", plan="pro")


@pytest.fixture
def owner(alice: Account) -> Client:
    """Alice's browser, signed in."""
    return signed_in(alice.owner)


@pytest.fixture
def staff(db: None) -> Client:
    return signed_in(User.objects.create_superuser("staff@postrider.example", "correct horse battery"))


@pytest.fixture
def helper(db: None) -> User:
    """A member of the staff with no permission."""
    return User.objects.create(email="helper@postrider.example", is_staff=True)


@pytest.fixture(autouse=True)
def _fresh_throttles(monkeypatch: Any) -> None:
    # Each test starts with full buckets.
    monkeypatch.setattr(throttle, "PREFIX", f"test:{uuid4()}:")


@pytest.fixture(autouse=True)
def _trial_settings(settings: Any) -> None:
    settings.DELIVERY_TRANSPORT = "inbox"
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
    settings.SIGNUP = "open"


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture
def visit(browser, live_server):
    with visited(browser, live_server.url, viewport={"width": 1280, "height": 800}) as visit:
        yield visit


@pytest.fixture
def phone(browser, live_server):
    with visited(browser, live_server.url, viewport={"width": 390, "height": 844}, color_scheme="dark") as visit:
        yield visit


# One look is enough in most runs: page_problems (axe.py) also measures the width of a phone.
@pytest.fixture(params=[LOOKS[0], *(pytest.param(*one.values, id=one.id, marks=pytest.mark.long) for one in LOOKS[1:])])
def look(request, browser, live_server):
    """A desktop and a phone; `look.name` names the combination with light or dark mode, for screenshots."""
    width, scheme = request.param
    with visited(browser, live_server.url, viewport={"width": width, "height": 900}, color_scheme=scheme) as visit:
        visit.name = f"{width}-{scheme}"
        yield visit
