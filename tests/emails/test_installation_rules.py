"""RECIPIENTS names a file: its rules apply to every workspace and to system email (docs/decisions/0400)."""

import pytest
from django.conf import LazySettings

from console.system_mail.models import SystemMail, SystemMailKind
from console.system_mail.sending import SystemMailQueueWork
from console.system_mail.services import queue_system_mail
from core.delivery.recipients import RecipientSetting, read_recipients
from core.lib.worker.processor import QueueProcessor
from core.workspaces.api import authentication
from core.workspaces.recipients.caps import Cap, Exceeding
from core.workspaces.recipients.rules import read_rules
from core.workspaces.services import change_rules
from emails.models import Email, Recipient
from emails.sending.emails_work import EmailQueueWork
from emails.sending.transports import configured_transport
from interfaces.inbound.inbox.models import CaughtMail
from tests.conftest import Account, Api, code_of, mail, make_account, make_domain, make_key
from tests.emails.builders import event_kinds, send
from tests.sending_process import perform_jobs, relay_to_mail_host, send_everything

# The inbox is written by another thread.
pytestmark = pytest.mark.django_db(transaction=True)

QA, OTHER = "qa@test-team.example", "eve@example.net"


@pytest.fixture
def account(alice: Account) -> Account:
    make_domain(alice.workspace, "alice.example")
    return alice


@pytest.fixture
def api(account: Account) -> Api:
    return Api(make_key(account.workspace))


@pytest.fixture
def host(settings):
    with relay_to_mail_host(settings) as host:
        yield host


def name_file(settings: LazySettings, *allow: str, otherwise: str = "refuse") -> None:
    """Let RECIPIENTS name a file with rules."""
    target = QA if otherwise == "redirect" else None
    rules = read_rules(allow=allow, otherwise=otherwise, redirect_to=target)
    settings.RECIPIENTS = RecipientSetting(rules=rules)


def captured() -> list[str]:
    return sorted(CaughtMail.objects.filter(is_captured=True).values_list("recipient", flat=True))


def send_system_email(to: str) -> None:
    queue_system_mail(to=to, kind=SystemMailKind.RESET, subject="A new password", text="Open")
    QueueProcessor(SystemMailQueueWork(configured_transport())).run()


@pytest.mark.parametrize("otherwise", ["refuse", "capture", "redirect"])
def test_system_email_goes_to_allowed_addresses_only(settings, host, otherwise):
    settings.SYSTEM_FROM = "The Service <no-reply@service.example>"
    name_file(settings, "@example.com", otherwise=otherwise)
    for address in ("ada@example.com", OTHER):
        send_system_email(address)
    assert (host.recipients, captured()) == (["ada@example.com"], [OTHER])
    assert CaughtMail.objects.get().workspace is None
    assert {*SystemMail.objects.values_list("state", flat=True)} == {"sent"}


def test_a_program_learns_that_rules_apply_but_not_whom_they_allow(settings, api):
    name_file(settings, "secret-team@example.com")
    answer = api.get("/me")
    assert answer.json()["recipients"] == "rules"
    assert "secret-team" not in answer.content.decode()


@pytest.mark.parametrize("redirect_to", [QA, OTHER])
def test_a_workspace_redirects_to_nobody_whom_the_file_does_not_allow(settings, account, api, host, redirect_to):
    name_file(settings, "@example.com", "@test-team.example", otherwise="capture")
    rules = read_rules(allow=["ada@example.com"], otherwise="redirect", redirect_to=redirect_to)
    change_rules(account.workspace, rules=rules)
    authentication.cache.clear()
    send(api, to="bob@example.com")
    send_everything()
    assert host.recipients == ([QA] if redirect_to == QA else [])
    assert captured() == ([] if redirect_to == QA else ["bob@example.com"])


def test_the_transport_captures_a_message_that_no_check_has_stopped(settings, api, host):
    name_file(settings, "@example.com")
    work = EmailQueueWork(configured_transport(), sessions=50)
    settings.RECIPIENTS = read_recipients("all")
    for address in ("ada@example.com", OTHER):
        send(api, to=address)
    work.record(perform_jobs(work, work.claim(5).jobs))
    assert (host.recipients, captured()) == (["ada@example.com"], [OTHER])


class TestCaps:
    def cap(self, settings: LazySettings, *caps: Cap) -> None:
        settings.RECIPIENTS = RecipientSetting(rules=read_rules(caps=caps))

    def test_they_count_the_emails_of_all_workspaces(self, settings, api):
        bob = make_account("bob").workspace
        make_domain(bob, "bob.example")
        other = Api(make_key(bob))
        self.cap(settings, Cap(2, 3600))
        send(api)
        assert other.post("/emails/send", mail(**{"from": "hi@bob.example"})).status_code == 202
        for sender, domain in ((api, "alice"), (other, "bob")):
            refused = sender.post("/emails/send", mail(**{"from": f"hi@{domain}.example"}))
            assert code_of(refused) == (429, "recipient_capped")
        assert Email.objects.count() == 2

    def test_a_schedule_from_before_is_counted_when_it_is_claimed(self, settings, api, host):
        ids = [send(api), send(api)]
        self.cap(settings, Cap(1, 3600, exceeding=Exceeding.DROP))
        send_everything()
        assert len(host.recipients) == 1
        assert sorted(Recipient.objects.values_list("state", "reason")) == [
            ("cancelled", "recipient_capped"), ("sent", None),
        ]  # fmt: skip
        assert sorted(kind for one in ids for kind in event_kinds(one)) == ["cancelled", "queued", "queued", "sent"]
