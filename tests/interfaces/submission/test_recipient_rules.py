"""SMTP clients whose workspace or key has recipient rules (docs/decisions/0388)."""

import random
from email.header import Header
from email.utils import formataddr

import pytest

from core.workspaces.api import authentication
from core.workspaces.models import ApiKey
from core.workspaces.recipients.caps import Cap
from core.workspaces.recipients.rules import read_rules
from core.workspaces.services import change_rules
from emails.models import Email, QueueEntry, Recipient
from interfaces.inbound.inbox.models import CaughtMail
from tests.conftest import IS_LONG_RUN
from tests.emails.spellings import ALLOWED, OTHERS, PERMITTED, is_allowed
from tests.interfaces.submission.fixtures import MESSAGE
from tests.sending_process import relay_to_mail_host, send_everything

pytestmark = pytest.mark.django_db(transaction=True)

QA = "qa@test-team.example"
MESSAGES = 1_000 if IS_LONG_RUN else 15


def limit(owner, *allow: str, otherwise: str = "refuse") -> None:
    target = QA if otherwise == "redirect" else None
    change_rules(owner, rules=read_rules(allow=allow, otherwise=otherwise, redirect_to=target))
    authentication.cache.clear()


@pytest.mark.parametrize("owner", ["workspace", "key"])
def test_a_recipient_is_refused_at_rcpt(port, workspace, owner):
    limit(workspace if owner == "workspace" else ApiKey.objects.get(), "@example.com")
    refused = port.submit(MESSAGE, "Eve@Example.net")
    assert refused == (550, "5.7.1 The recipient rules do not allow Eve@example.net")
    assert port.submit(MESSAGE, "Ada@Example.com")[0] == 250
    assert [*Recipient.objects.values_list("address", flat=True)] == ["ada@example.com"]


def test_a_capped_recipient_is_refused_for_a_time(port, workspace):
    change_rules(workspace, rules=read_rules(caps=[Cap(1, 3600)]))
    authentication.cache.clear()
    assert port.submit(MESSAGE)[0] == 250
    code, text = port.submit(MESSAGE)
    assert (code, text[:5]) == (451, "4.7.1")
    assert Email.objects.count() == 1


def test_a_rule_that_changes_after_rcpt_refuses_the_message(port, workspace):
    with port.client() as client:
        client.mail("a@b.example")
        assert client.rcpt("eve@example.net")[0] == 250
        limit(workspace, "@example.com")
        code, text = client.data(MESSAGE)
    assert (code, text[:5]) == (550, b"5.7.1")
    assert not Email.objects.exists()


def test_the_setting_for_suppressed_recipients_does_not_let_others_through(port, workspace, settings):
    settings.SUBMISSION_SUPPRESSED = "accept"
    limit(workspace, "@example.com")
    assert port.submit(MESSAGE, "eve@example.net")[0] == 550


@pytest.mark.parametrize("otherwise", ["refuse", "capture", "redirect"])
def test_no_spelling_of_an_envelope_recipient_escapes_the_rules(port, workspace, settings, otherwise):
    limit(workspace, *ALLOWED, otherwise=otherwise)
    chance = random.Random(otherwise)
    with relay_to_mail_host(settings) as host:
        for _ in range(MESSAGES):
            submitted = [chance.choice(OTHERS + PERMITTED) for _ in range(4)]
            with port.client() as client:
                client.ehlo()
                client.mail("a@b.example", ["SMTPUTF8"])
                codes = {address: _rcpt(client, _spelled(chance, address)) for address in submitted}
                if 250 in codes.values():
                    assert client.data(_message(chance, submitted))[0] == 250
            if otherwise == "refuse":
                assert {address: code == 250 for address, code in codes.items()} == {
                    address: is_allowed(_in_ascii(address)) for address in submitted
                }
        while QueueEntry.objects.exists():
            send_everything()
        assert not [address for address in host.recipients if address != QA and not is_allowed(address)]
    kept = [*CaughtMail.objects.values_list("recipient", flat=True)]
    assert not [address for address in kept if is_allowed(address)]
    assert bool(kept) is (otherwise == "capture")


def _rcpt(client, address: str) -> int:
    """Send RCPT with the address in UTF-8, which smtplib's own method does not; return the code of the reply."""
    client.sock.sendall(f"RCPT TO:<{address}>\r\n".encode())
    return client.getreply()[0]


def _in_ascii(address: str) -> str:
    local, _, domain = address.rpartition("@")
    return f"{local}@{domain.encode('idna').decode()}"


def _spelled(chance: random.Random, address: str) -> str:
    local, _, domain = address.rpartition("@")
    if chance.random() < 0.4 and local.isascii():
        local = local.swapcase()
    if chance.random() < 0.3 and local.isascii():
        local = f'"{local}"'
    return f"{local}@{domain.upper() if domain.isascii() and chance.random() < 0.4 else domain}"


def _message(chance: random.Random, addresses: list[str]) -> bytes:
    """Return a message whose header names the recipients as programs do: groups, encoded words, and not all of them."""
    visible = [_in_ascii(address) for address in addresses if address.split("@")[0].isascii()]
    named = [formataddr((Header("Grüße, Ada <eve@example.com>", "utf-8").encode(), one)) for one in visible[:2]]
    to = (
        f"Team: {', '.join(named)};"
        if chance.random() < 0.5 and named
        else ", ".join(named) or "undisclosed-recipients:;"
    )
    lines = [
        "From: Alice <hi@alice.example>",
        f"To: {to}",
        f"Cc: {', '.join(visible[2:3])}" if visible[2:3] else "X-A: 1",
    ]
    return "\r\n".join([*lines, "Subject: Hi", "", "Hi", ""]).encode()
