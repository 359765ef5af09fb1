"""System emails are sent by the configured transport, survive dead workers, and are visible to staff."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from console.system_mail import queue
from console.system_mail.models import SystemMail, SystemMailKind
from console.system_mail.sending import SystemMailQueueWork, SystemMailResult
from console.system_mail.services import pretend_to_queue, queue_system_mail
from console.system_mail.tasks import expire
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.recipients import read_recipients
from core.lib.worker.processor import QueueProcessor
from domains.models import Domain
from emails.sending.transports import configured_transport
from interfaces.inbound.inbox.models import CaughtMail
from tests.conftest import make_account, make_domain
from tests.console.dashboard.queue_runs import inbox as running_inbox
from tests.core.lib.worker.outages import expect_outage, lose_connection
from tests.sending_process import perform_jobs, relay_to_mail_host

URL = "http://127.0.0.1/dashboard/reset/new/?token=very-private"


@pytest.fixture
def inbox(settings):
    settings.DELIVERY_TRANSPORT, settings.SYSTEM_FROM = "inbox", "The Service <no-reply@service.example>"
    with running_inbox() as settings.INBOX_PORT:
        yield


def queue_reset(**fields):
    values = {
        "to": "ada@example.com",
        "kind": SystemMailKind.RESET,
        "subject": "A new\r\npassword",
        "text": f"Open\n\n{URL}\n",
    }
    return queue_system_mail(**{**values, **fields})


def run_processor():
    QueueProcessor(SystemMailQueueWork(configured_transport())).run()


def make_due():
    SystemMail.objects.update(due_at=Now() - timedelta(seconds=1))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("value", ["captured", "redirect:qa@test-team.example"])
def test_a_system_email_stays_in_the_inbox_of_the_staff_while_no_recipient_gets_email(settings, value):
    settings.RECIPIENTS, settings.SYSTEM_FROM = read_recipients(value), "The Service <no-reply@service.example>"
    queue_reset()
    with relay_to_mail_host(settings) as host:
        work = SystemMailQueueWork(configured_transport())
        work.record(perform_jobs(work, work.claim(5).jobs))
        assert host.connections == 0
    caught = CaughtMail.objects.get()
    assert (caught.workspace, caught.recipient, caught.is_captured) == (None, "ada@example.com", True)
    assert SystemMail.objects.get().state == "sent"


class ScriptedTransport:
    """A transport that returns the given statuses in order."""

    trouble = None

    def __init__(self, *statuses: DeliveryStatus) -> None:
        self.statuses, self.messages = list(statuses), []

    async def deliver(self, message, *, lease):
        self.messages.append(message.to_bytes())
        return DeliveryOutcome(self.statuses.pop(0), Reply(450, "4.2.0 Later"), "x")


@pytest.mark.django_db(transaction=True)
class TestDeliveryToTheInbox:
    def test_a_system_email_is_caught_without_a_workspace(self, inbox):
        queue_reset()
        run_processor()

        caught, mail = CaughtMail.objects.get(), SystemMail.objects.get()
        assert (caught.workspace, caught.recipient, caught.subject) == (None, "ada@example.com", "A new password")
        source = bytes(caught.source).decode()
        assert "From: The Service <no-reply@service.example>" in source
        assert f"Message-ID: <{mail.id}@service.example>" in source
        assert "Auto-Submitted: auto-generated" in source
        for header in ("List-Unsubscribe", "DKIM-Signature", "/u/"):
            assert header not in source
        assert (mail.state, mail.sealed_text) == ("sent", "")

    def test_a_system_email_is_signed_once_the_domain_is_verified(self, inbox):
        make_domain(make_account("alice").workspace, "service.example")
        queue_reset()
        run_processor()
        assert b"DKIM-Signature" not in bytes(CaughtMail.objects.get().source)

        Domain.objects.update(status="verified")
        queue_reset()
        run_processor()
        assert b"DKIM-Signature" in bytes(CaughtMail.objects.latest("received_at").source)

    def test_a_system_email_of_a_dead_worker_is_sent_by_another(self, inbox):
        queue_reset()
        assert len(SystemMailQueueWork(configured_transport()).claim(5).jobs) == 1
        run_processor()
        assert not CaughtMail.objects.exists()

        make_due()
        run_processor()
        assert CaughtMail.objects.count() == 1


@pytest.mark.django_db(transaction=True)
class TestQueue:
    def test_the_text_is_encrypted_while_it_waits(self, db):
        mail = queue_reset()

        stored = SystemMail.objects.values_list("sealed_text", flat=True).get()
        assert "very-private" not in stored
        assert URL in mail.text

    def test_every_attempt_has_the_same_bytes_until_one_succeeds(self, db):
        transport = ScriptedTransport(DeliveryStatus.DEFERRED, DeliveryStatus.PARKED, DeliveryStatus.SENT)
        queue_reset()
        for _ in range(3):
            make_due()
            QueueProcessor(SystemMailQueueWork(transport)).run()

        mail = SystemMail.objects.get()
        assert (mail.state, mail.attempts, mail.reply) == ("sent", 2, "450 4.2.0 Later")
        assert len(set(transport.messages)) == 1

    def test_a_deferred_system_email_waits(self, db):
        transport = ScriptedTransport(DeliveryStatus.DEFERRED)
        queue_reset()
        QueueProcessor(SystemMailQueueWork(transport)).run()
        QueueProcessor(SystemMailQueueWork(transport)).run()

        assert len(transport.messages) == 1

    @pytest.mark.parametrize("status", [DeliveryStatus.BOUNCED, DeliveryStatus.FAILED])
    def test_a_refusal_is_final(self, db, status):
        queue_reset()
        QueueProcessor(SystemMailQueueWork(ScriptedTransport(status))).run()

        assert SystemMail.objects.get().state == "failed"

    def test_a_system_email_fails_after_the_maximum_age(self, db, settings):
        queue_reset()
        SystemMail.objects.update(created_at=Now() - timedelta(seconds=settings.DELIVERY_MAX_AGE + 1))
        QueueProcessor(SystemMailQueueWork(ScriptedTransport(DeliveryStatus.DEFERRED))).run()

        assert SystemMail.objects.get().state == "failed"

    def test_a_worker_that_lost_its_lease_changes_nothing(self, db):
        mail = queue_reset()
        (old,) = SystemMailQueueWork(ScriptedTransport()).claim(5).jobs
        make_due()
        (new,) = SystemMailQueueWork(ScriptedTransport()).claim(5).jobs

        SystemMailQueueWork(ScriptedTransport()).record(
            [SystemMailResult(old.claim, DeliveryOutcome(DeliveryStatus.FAILED, Reply(550, "No")))]
        )

        mail.refresh_from_db()
        assert (mail.state, new.claim.fence) == ("waiting", 2)

    def test_an_outage_while_system_emails_are_loaded_is_no_attempt(self, db, monkeypatch):
        queue_reset()
        work = SystemMailQueueWork(ScriptedTransport(DeliveryStatus.SENT))
        load = queue.load
        monkeypatch.setattr(queue, "load", lambda claims: (lose_connection(), load(claims)))
        with expect_outage():
            work.claim(5)
        monkeypatch.undo()
        QueueProcessor(work).run()

        mail = SystemMail.objects.get()
        assert (mail.state, mail.attempts) == ("sent", 1)

    def test_renewing_extends_a_lease(self, db):
        mail = queue_reset()
        (job,) = SystemMailQueueWork(ScriptedTransport()).claim(5).jobs
        make_due()

        SystemMailQueueWork(ScriptedTransport()).renew([job.claim])

        assert queue.claim(5) == []
        mail.refresh_from_db()
        assert mail.due_at > mail.created_at

    def test_a_system_email_that_cannot_be_decrypted_does_not_stop_the_others(self, db):
        queue_reset()
        SystemMail.objects.update(sealed_text="gone.AAAA")
        queue_reset(to="grace@example.com")

        jobs = SystemMailQueueWork(ScriptedTransport()).claim(5).jobs

        assert [job.message.recipient for job in jobs] == ["grace@example.com"]
        assert SystemMail.objects.get(recipient="ada@example.com").state == "failed"

    def test_a_pretended_system_email_is_never_sent(self, db):
        pretend_to_queue(to="ada@example.com", kind=SystemMailKind.RESET, subject="x", text="y")
        make_due()

        assert queue.claim(5) == []

    def test_old_rows_are_deleted(self, db):
        queue_reset()
        queue_reset()
        SystemMail.objects.filter(id=SystemMail.objects.first().id).update(created_at=Now() - timedelta(days=31))

        expire()

        assert SystemMail.objects.count() == 1


@pytest.mark.django_db
def test_a_claim_has_the_attempt_number():
    queue_reset()

    (mail,) = queue.load(queue.claim(5))

    assert queue.claim_of(mail).attempt == 1
