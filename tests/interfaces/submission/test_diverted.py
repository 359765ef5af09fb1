"""SMTP clients of an installation that captures or redirects: no recipient gets a message (docs/decisions/0387)."""

import pytest

from core.delivery.recipients import read_recipients
from interfaces.inbound.inbox.models import CaughtMail
from tests.interfaces.submission.fixtures import MESSAGE
from tests.sending_process import relay_to_mail_host, send_everything

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("value", "left", "kept"), [
    ("captured", [], ["ada@example.com", "eve@example.com"]),
    ("redirect:qa@test-team.example", ["qa@test-team.example"] * 2, []),
])  # fmt: skip
def test_a_message_does_not_reach_its_envelope_recipients(port, settings, value, left, kept):
    settings.RECIPIENTS = read_recipients(value)
    with relay_to_mail_host(settings) as host:
        assert port.submit(MESSAGE, "Ada@Example.com", "eve@example.com")[0] == 250
        send_everything()
        assert host.recipients == left
    assert sorted(CaughtMail.objects.values_list("recipient", flat=True)) == kept
