"""A real Postfix accepts a message, cannot deliver it, and sends a DSN to the inbound server."""

import smtplib

import pytest
from aiosmtpd.controller import Controller

from emails.models import Email, Recipient
from events.models import Event
from interfaces.inbound.models import MailReport
from suppressions.models import Suppression
from tests.interfaces.inbound.fixtures import DOMAIN, return_path_of, run_inbound, sent_recipient
from tests.stack.stack import free_port, wait_for

pytestmark = [pytest.mark.full, pytest.mark.django_db(transaction=True)]

postfix = pytest.importorskip("tests.standards.postfix")

MESSAGE = b"From: hi@alice.example\r\nTo: ada@example.com\r\nSubject: Hello\r\n\r\nHello Ada\r\n"


class Refusing:
    """The recipient's host, with a fixed reply to RCPT."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802
        return self.answer


def through_postfix(recipient, port, *, answer, settings=None):
    """Send a recipient's message to Postfix, whose next host replies with `answer`; wait for the report."""
    host = Controller(Refusing(answer), hostname="127.0.0.1", port=free_port())
    host.start()
    try:
        routes = {DOMAIN: port.number, "*": host.port}
        with (
            postfix.Postfix(routes=routes, settings=settings) as relay,
            smtplib.SMTP("127.0.0.1", relay.port) as client,
        ):
            client.sendmail(return_path_of(recipient), [recipient.address], MESSAGE)
            wait_for(lambda: MailReport.objects.exclude(processed_at=None).exists(), seconds=20, what="a report")
    finally:
        host.stop()


def test_a_bounce_of_postfix_bounces_the_email_and_suppresses_the_address(workspace):
    recipient = sent_recipient(workspace)
    with run_inbound() as port:
        through_postfix(recipient, port, answer="550 5.1.1 <ada@example.com>: Recipient address rejected: User unknown")
    assert MailReport.objects.get().verdict == "recorded"
    assert Recipient.objects.get().state == "bounced"
    assert Email.objects.get().status == "bounced"
    assert Suppression.objects.get().email == "ada@example.com"
    payload = Event.objects.exclude(email=None).last().payload
    assert (payload["code"], payload["enhancedCode"], payload["reason"]) == (550, "5.1.1", "unknown_user")


def test_a_rejection_of_the_sender_bounces_without_suppressing(workspace):
    recipient = sent_recipient(workspace)
    with run_inbound() as port:
        through_postfix(
            recipient, port, answer="554 5.7.1 Service unavailable; Client host blocked using zen.spamhaus.org"
        )
    assert Email.objects.get().status == "bounced"
    assert not Suppression.objects.exists()
