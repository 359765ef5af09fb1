import pytest

from core.delivery.transports.relay import inbox_transport
from core.workspaces.models import Workspace
from emails.sending.emails_work import EmailQueueWork
from tests.conftest import Account, make_domain


@pytest.fixture
def workspace(alice: Account) -> Workspace:
    """Alice's workspace, with the registered domain alice.example."""
    make_domain(alice.workspace, "alice.example")
    return alice.workspace


@pytest.fixture
def sending(monkeypatch: pytest.MonkeyPatch) -> EmailQueueWork:
    """Return queue work that claims; nothing is sent."""
    monkeypatch.setattr("emails.sending.emails_work.PROMOTE_EVERY_SECONDS", 0)
    return EmailQueueWork(inbox_transport(port=1, ehlo_name="localhost"), sessions=10)
