"""Test keys over SMTP: nothing leaves, and suppressions are not applied (docs/decisions/0109)."""

import pytest

from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Usage
from emails.models import Email
from suppressions.services import suppress_address
from tests.conftest import make_key
from tests.interfaces.submission.fixtures import MESSAGE
from tests.sending_process import relay_to_mail_host, send_everything

pytestmark = pytest.mark.django_db(transaction=True)

KEYED = b"X-Postrider-Idempotency-Key: order-1\r\n" + MESSAGE


@pytest.fixture
def ci_port(port, workspace):
    """Return the port for clients with a test key."""
    port.key = make_key(workspace, "sending_access", limits=KeyLimits(is_test=True))
    return port


def test_a_message_of_a_test_key_does_not_leave(ci_port, settings):
    with relay_to_mail_host(settings) as host:
        for source in (MESSAGE, KEYED):
            assert ci_port.submit(source)[0] == 250
        assert send_everything() == 2
        assert (host.connections, host.recipients) == (0, [])
    assert {(email.is_test, email.status) for email in Email.objects.all()} == {(True, "delivered")}
    assert not Usage.objects.filter(used__gt=0).exists()


def test_live_and_test_messages_are_accepted_apart(ci_port, workspace, settings):
    test_key, live_key = ci_port.key, make_key(workspace)
    with relay_to_mail_host(settings) as host:
        for key in (test_key, live_key):
            ci_port.key = key
            assert ci_port.submit(KEYED)[0] == 250
        assert send_everything() == 2
        assert host.recipients == ["ada@example.com"]
    assert sorted(Email.objects.values_list("is_test", flat=True)) == [False, True]


def test_a_suppressed_recipient_is_accepted(ci_port, workspace, settings):
    settings.SUBMISSION_SUPPRESSED = "refuse"
    suppress_address(workspace, address="ada@example.com", reason="bounce")
    assert ci_port.submit()[0] == 250
    ci_port.key = make_key(workspace)
    assert ci_port.submit()[0] == 550
