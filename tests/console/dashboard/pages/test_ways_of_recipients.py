"""Every page that sends email obeys the recipient rules (docs/security.md, "Ways of a recipient")."""

from dataclasses import replace

import pytest
from django.core.cache import cache

from core.delivery.recipients import RecipientSetting, read_recipients
from core.workspaces.recipients.rules import Otherwise, read_rules
from core.workspaces.services import change_rules
from domains.receiving.services import active_cache
from emails.models import QueueEntry, Recipient
from interfaces.inbound.inbox.models import CaughtMail
from receiving.models import ForwardTarget
from tests.conftest import Account, make_domain
from tests.console.dashboard.conftest import make_email, make_received
from tests.receiving.builders import receive_for
from tests.sending_process import relay_to_mail_host, send_everything

# The inbox is written by another thread.
pytestmark = pytest.mark.django_db(transaction=True)

SENDER, TARGET = "support@alice.example", "grace@example.net"


@pytest.fixture(autouse=True)
def _receiving(settings):
    settings.RECEIVING_DOMAIN, settings.RECEIVING_MX = "", ["mx.demo.example"]
    active_cache.clear()
    cache.clear()


@pytest.fixture
def host(settings):
    with relay_to_mail_host(settings) as host:
        yield host


def send_test(owner, alice: Account) -> str:
    owner.post("/dashboard/test-email/")
    return alice.owner.email


def send_template(owner, alice: Account) -> str:
    form = {"name": "Receipt", "subject": "Hi", "html": "<p>Hi</p>", "data": "{}"}
    owner.post("/dashboard/templates/test/", {**form, "test_from": SENDER, "test_to": TARGET})
    return TARGET


def send_copy(owner, alice: Account) -> str:
    sent = make_email(alice.workspace, sender=SENDER)
    nonce = owner.get(f"/dashboard/emails/{sent.id}/resend/").context["nonce"]
    owner.post(f"/dashboard/emails/{sent.id}/resend/", {"nonce": nonce})
    return "ada@example.com"


def send_answer(owner, alice: Account) -> str:
    received = make_received(alice.workspace, recipient=SENDER)
    owner.post(f"/dashboard/received/{received.id}/answer/", {"sender": SENDER, "subject": "Hi", "text": "Hello"})
    return "ada@example.com"


def send_forward(owner, alice: Account) -> str:
    received = make_received(alice.workspace, recipient=SENDER)
    ForwardTarget.objects.create(workspace=alice.workspace, address=TARGET, confirmed_at="2026-01-01T00:00:00Z")
    owner.post(f"/dashboard/received/{received.id}/forward/", {"to": TARGET})
    return TARGET


WAYS = {
    "test email": send_test,
    "template": send_template,
    "copy": send_copy,
    "answer": send_answer,
    "forward": send_forward,
}
RULES = read_rules(allow=["@allowed.example"])


@pytest.fixture(params=WAYS)
def way(request, alice):
    receive_for(make_domain(alice.workspace, "alice.example"))
    return WAYS[request.param]


def test_each_page_sends_without_rules(owner, alice, host, way):
    recipient = way(owner, alice)
    assert send_everything() == 1
    assert host.recipients == [recipient]


@pytest.mark.parametrize("rules_of", ["workspace", "installation"])
def test_no_page_sends_to_a_recipient_that_is_refused(owner, alice, host, settings, way, rules_of):
    if rules_of == "workspace":
        change_rules(alice.workspace, rules=RULES)
    else:
        settings.RECIPIENTS = RecipientSetting(rules=RULES)
    way(owner, alice)
    assert not QueueEntry.objects.exists()
    assert not CaughtMail.objects.exists()
    assert host.connections == 0


@pytest.mark.parametrize("rules_of", ["workspace", "installation"])
def test_what_a_page_sends_is_captured(owner, alice, host, settings, way, rules_of):
    if rules_of == "workspace":
        change_rules(alice.workspace, rules=replace(RULES, otherwise=Otherwise.CAPTURE))
    else:
        settings.RECIPIENTS = read_recipients("captured")
    recipient = way(owner, alice)
    assert send_everything() == 1
    assert [*CaughtMail.objects.values_list("recipient", flat=True)] == [recipient]
    assert host.connections == 0


@pytest.mark.parametrize("otherwise", list(Otherwise))
def test_what_a_page_sent_obeys_later_rules(owner, alice, host, way, otherwise):
    recipient = way(owner, alice)
    target = "qa@test-team.example" if otherwise is Otherwise.REDIRECT else ""
    change_rules(alice.workspace, rules=replace(RULES, otherwise=otherwise, redirect_to=target))
    send_everything()
    assert host.recipients == ([target] if target else [])
    kept = [*CaughtMail.objects.values_list("recipient", flat=True)]
    assert kept == ([recipient] if otherwise is Otherwise.CAPTURE else [])
    reasons = Recipient.objects.filter(state="failed").values_list("reason", flat=True)
    assert [*reasons] == (["recipient_not_allowed"] if otherwise is Otherwise.REFUSE else [])
