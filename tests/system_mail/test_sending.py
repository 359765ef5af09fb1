"""Mail of the service itself leaves by the transport of all mail, survives workers, and is staff's to see."""

import asyncio
import contextlib
import threading
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from domains.models import Domain
from emails.sending.transports import chosen_transport
from inbound.inbox.models import CaughtMail
from inbound.inbox.receiver import serve
from lib.worker.processor import Drain
from system_mail import queue
from system_mail.models import SystemMail
from system_mail.sending import Result, Sending
from system_mail.services import Kind, pretend_to_queue, queue_mail
from system_mail.tasks import expire
from tests.conftest import make_account, make_domain
from tests.inbound.inbox.test_receiver import is_open
from tests.stack.stack import free_port, wait_for

URL = "http://127.0.0.1/dashboard/reset/new/?token=very-private"


@pytest.fixture
def inbox(settings):
    settings.INBOX_PORT, loop = free_port(), asyncio.new_event_loop()
    settings.DELIVERY_TRANSPORT, settings.SYSTEM_FROM = "inbox", "The Service <no-reply@service.example>"

    def run():
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.run_until_complete(_hang_up())

    task = loop.create_task(serve(settings.INBOX_PORT))
    thread = threading.Thread(target=run)
    thread.start()
    wait_for(lambda: is_open(settings.INBOX_PORT), seconds=5, what="the inbox listens")
    yield
    loop.call_soon_threadsafe(task.cancel)
    thread.join()
    loop.close()


async def _hang_up():
    """End the sessions that the transport keeps open for the next mail."""
    sessions = asyncio.all_tasks() - {asyncio.current_task()}
    for session in sessions:
        session.cancel()
    await asyncio.gather(*sessions, return_exceptions=True)
    await asyncio.sleep(0.02)


def write(**fields):
    values = {"to": "ada@example.com", "kind": Kind.RESET, "subject": "A new\r\npassword", "text": f"Open\n\n{URL}\n"}
    return queue_mail(**{**values, **fields})


def drain():
    Drain(Sending(chosen_transport())).run()


def make_due():
    SystemMail.objects.update(due_at=Now() - timedelta(seconds=1))


class Answers:
    """A transport that gives the answers of a script; of real ones a test has them in test_smtp."""

    trouble = None

    def __init__(self, *verdicts: DeliveryStatus) -> None:
        self.verdicts, self.messages = list(verdicts), []

    async def deliver(self, consignment, *, lease):
        self.messages.append(consignment.message())
        return DeliveryOutcome(self.verdicts.pop(0), Reply(450, "4.2.0 Later"), "x")


@pytest.mark.django_db(transaction=True)
class TestByTheInbox:
    def test_it_is_caught_for_staff_alone(self, inbox):
        write()
        drain()

        caught, mail = CaughtMail.objects.get(), SystemMail.objects.get()
        assert (caught.workspace, caught.recipient, caught.subject) == (None, "ada@example.com", "A new password")
        source = bytes(caught.source).decode()
        assert "From: The Service <no-reply@service.example>" in source
        assert f"Message-ID: <{mail.id}@service.example>" in source
        assert "Auto-Submitted: auto-generated" in source
        for absent in ("List-Unsubscribe", "DKIM-Signature", "/u/"):
            assert absent not in source
        assert (mail.state, mail.sealed_text) == ("sent", "")

    def test_it_is_signed_where_the_domain_is_proven(self, inbox):
        make_domain(make_account("alice").workspace, "service.example")
        write()
        drain()
        assert b"DKIM-Signature" not in bytes(CaughtMail.objects.get().source)

        Domain.objects.update(status="verified")
        write()
        drain()
        assert b"DKIM-Signature" in bytes(CaughtMail.objects.latest("received_at").source)

    def test_what_a_dead_worker_held_is_sent_by_another(self, inbox):
        write()
        assert len(Sending(chosen_transport()).claim(5)) == 1
        drain()
        assert not CaughtMail.objects.exists()

        make_due()
        drain()
        assert CaughtMail.objects.count() == 1


@pytest.mark.django_db(transaction=True)
class TestTheQueue:
    def test_the_text_is_sealed_while_it_waits(self, db):
        mail = write()

        stored = SystemMail.objects.values_list("sealed_text", flat=True).get()
        assert "very-private" not in stored
        assert URL in mail.text

    def test_every_attempt_has_the_same_bytes_until_one_succeeds(self, db):
        transport = Answers(DeliveryStatus.DEFERRED, DeliveryStatus.PARKED, DeliveryStatus.SENT)
        write()
        for _ in range(3):
            make_due()
            Drain(Sending(transport)).run()

        mail = SystemMail.objects.get()
        assert (mail.state, mail.attempts, mail.reply) == ("sent", 2, "450 4.2.0 Later")
        assert len(set(transport.messages)) == 1

    def test_a_mail_that_was_put_off_waits(self, db):
        transport = Answers(DeliveryStatus.DEFERRED)
        write()
        Drain(Sending(transport)).run()
        Drain(Sending(transport)).run()

        assert len(transport.messages) == 1

    @pytest.mark.parametrize("verdict", [DeliveryStatus.BOUNCED, DeliveryStatus.FAILED])
    def test_a_refusal_ends_it(self, db, verdict):
        write()
        Drain(Sending(Answers(verdict))).run()

        assert SystemMail.objects.get().state == "failed"

    def test_it_is_given_up_after_the_longest_time(self, db, settings):
        write()
        SystemMail.objects.update(created_at=Now() - timedelta(seconds=settings.DELIVERY_MAX_AGE + 1))
        Drain(Sending(Answers(DeliveryStatus.DEFERRED))).run()

        assert SystemMail.objects.get().state == "failed"

    def test_a_worker_that_lost_its_lease_changes_nothing(self, db):
        mail = write()
        (old,) = Sending(Answers()).claim(5)
        make_due()
        (new,) = Sending(Answers()).claim(5)

        Sending(Answers()).record([Result(old.claim, DeliveryOutcome(DeliveryStatus.FAILED, Reply(550, "No")))])

        mail.refresh_from_db()
        assert (mail.state, new.claim.fence) == ("waiting", 2)

    def test_renewing_prolongs_a_lease(self, db):
        mail = write()
        (parcel,) = Sending(Answers()).claim(5)
        make_due()

        Sending(Answers()).renew([parcel])

        assert queue.claim(5) == []
        mail.refresh_from_db()
        assert mail.due_at > mail.created_at

    def test_one_that_cannot_be_unsealed_holds_up_no_other(self, db):
        write()
        SystemMail.objects.update(sealed_text="gone.AAAA")
        write(to="grace@example.com")

        parcels = Sending(Answers()).claim(5)

        assert [parcel.consignment.envelope.recipient for parcel in parcels] == ["grace@example.com"]
        assert SystemMail.objects.get(recipient="ada@example.com").state == "failed"

    def test_what_is_pretended_never_leaves(self, db):
        pretend_to_queue(to="ada@example.com", kind=Kind.RESET, subject="x", text="y")
        make_due()

        assert queue.claim(5) == []

    def test_old_rows_are_deleted(self, db):
        write()
        write()
        SystemMail.objects.filter(id=SystemMail.objects.first().id).update(created_at=Now() - timedelta(days=31))

        expire()

        assert SystemMail.objects.count() == 1


@pytest.mark.django_db
def test_a_claim_names_its_fence():
    write()

    (mail,) = queue.claim(5)

    assert queue.claim_of(mail).attempt == 1
