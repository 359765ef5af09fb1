"""Fixtures for tracking: a recipient in any state, and an anonymous visitor."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from core.workspaces.models import Workspace
from emails.links import UnsubscribeLink, click_url, open_url, preferences_url, unsubscribe_url
from emails.models import Email, Recipient
from events.models import Event
from interfaces.tracking.recorder import recorder
from tests.conftest import Account

TARGET = "https://shop.example/offer?a=1&b=2#top"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
SENT_STATES = {"sent", "delivered", "opened", "clicked"}


@dataclass
class Reader:
    """A recipient of an email, with methods that open, click and unsubscribe."""

    recipient: Recipient
    workspace: Workspace

    @property
    def email(self) -> Email:
        return Email.objects.get(id=self.recipient.email_id)

    @property
    def unsubscribe_path(self) -> str:
        address, stream = self.recipient.address, self.email.stream
        return path_of(
            unsubscribe_url(self.recipient.id, workspace_id=self.workspace.id, address=address, stream=stream)
        )

    @property
    def preferences_path(self) -> str:
        link = UnsubscribeLink(self.workspace.id, self.recipient.id, self.recipient.address, self.email.stream)
        return path_of(preferences_url(link))

    @property
    def pixel_path(self) -> str:
        return path_of(open_url(self.recipient.id))

    def click_path(self, target: str = TARGET) -> str:
        return path_of(click_url(self.recipient.id, workspace_id=self.workspace.id, target=target))

    def loads_the_pixel(self, times: int = 1, **headers: str) -> Any:
        return self.visits(self.pixel_path, times, **headers)

    def clicks(self, target: str = TARGET, times: int = 1, **headers: str) -> Any:
        return self.visits(self.click_path(target), times, **headers)

    def visits(self, path: str, times: int = 1, **headers: str) -> Any:
        named = {"user-agent": BROWSER, **{name.replace("_", "-"): value for name, value in headers.items()}}
        for _ in range(times):
            response = Client().get(path, headers=named)
        recorder.flush()
        self.recipient.refresh_from_db()
        return response

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        found = Event.objects.filter(recipient=self.recipient).order_by("number")
        return [(event.kind, event.payload) for event in found]

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events()]


def path_of(url: str) -> str:
    return "/" + url.split("/", 3)[3]


def make_reader(workspace: Workspace, *, state: str = "delivered", stream: str = "main", **fields: Any) -> Reader:
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    times = {"sent_at": long_ago} if state in SENT_STATES else {}
    times |= {f"{name}_at": long_ago for name in ("delivered", "opened", "clicked", "bounced") if name == state}
    email = Email.objects.create(
        workspace=workspace, sender="Alice <hi@alice.example>", from_domain="alice.example", to=["ada@example.com"],
        cc=[], bcc=[], subject="Hello", tags=[], created_at=long_ago, status=state, stream=stream,
        **times,
    )  # fmt: skip
    values = {"kind": "to", "position": 0, "address": "ada@example.com", "state": state, **times, **fields}
    return Reader(Recipient.objects.create(email=email, **values), workspace)


@pytest.fixture
def reader(alice: Account) -> Reader:
    """Ada, who received an email from Alice an hour ago."""
    return make_reader(alice.workspace)


@pytest.fixture
def reader_in(alice: Account) -> Callable[..., Reader]:
    def make(state: str, **fields: Any) -> Reader:
        return make_reader(alice.workspace, state=state, **fields)

    return make


@pytest.fixture
def visitor() -> Client:
    return Client(raise_request_exception=False)
