"""From an accepted request to a delivered email, over real HTTP and real SMTP."""

import email
import re
import time
from email import policy

import pytest

from tests.corpus import emails
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack

FOOTER = re.compile(r'(<table role="presentation" lang="en".*?</table>)', re.DOTALL)


def timeline(stack, email_id):
    return [event["eventType"] for event in stack.call("GET", f"/emails/{email_id}/events").body["data"]]


def lines(text):
    """Split lines; line ends are CRLF in every message (RFC 2045, section 2.8)."""
    return re.split("\r\n|\r|\n", text)


def delivered(stack, email_id):
    return stack.call("GET", f"/emails/{email_id}").body["status"] == "delivered"


@pytest.mark.alone
def test_the_first_email_is_delivered_within_a_second_of_readiness(stack):
    stack.start("service", WORKER_CONCURRENCY="1")
    started = time.monotonic()
    email_id = stack.send().body["id"]
    wait_for(lambda: delivered(stack, email_id), seconds=60, what="the delivery")
    assert time.monotonic() - started < 1


def test_the_service_is_not_ready_without_a_worker(stack):
    stack.start("web")
    assert not stack.is_ready()
    stack.start("worker")
    wait_for(stack.is_ready, seconds=60, what="the worker takes mail")


@pytest.mark.alone
def test_an_email_is_delivered_within_two_seconds(full_stack):
    full_stack.send()
    wait_for(full_stack.all_delivered, seconds=60, what="a warm worker")
    started = time.monotonic()
    email_id = full_stack.send().body["id"]
    wait_for(lambda: delivered(full_stack, email_id), seconds=60, what="the delivery")
    assert time.monotonic() - started < 2
    assert timeline(full_stack, email_id) == ["queued", "sent", "delivered"]


def test_each_recipient_gets_a_separate_message_with_the_common_headers(full_stack):
    full_stack.send(
        to=["Ada <a@x.example>", "b@x.example"], cc=["c@x.example"], bcc=["d@x.example"], replyTo="r@x.example"
    )
    # The status of the email is delivered as soon as one of its recipients is.
    undelivered = "SELECT count(*) FROM emails_recipient WHERE state <> 'delivered'"
    wait_for(lambda: full_stack.query(undelivered) == [(0,)], seconds=60, what="the delivery to all recipients")
    rows = full_stack.query(
        "SELECT c.recipient, c.source FROM inbox_caughtmail c JOIN emails_email e ON e.id = c.email_id "
        "JOIN emails_recipient r ON r.email_id = e.id WHERE r.address = 'd@x.example'"
    )
    messages = {address: email.message_from_bytes(source, policy=policy.default) for address, source in rows}
    assert messages.keys() == {"a@x.example", "b@x.example", "c@x.example", "d@x.example"}
    assert len({message["Message-ID"] for message in messages.values()}) == 4
    for address, source in rows:
        message = messages[address]
        assert (message["To"], message["Cc"], message["Reply-To"]) == (
            "Ada <a@x.example>, b@x.example",
            "c@x.example",
            "r@x.example",
        )
        assert b"d@x.example" not in source
        assert message["Bcc"] is None


@pytest.mark.parametrize("real", emails(), ids=lambda real: real.name)
def test_realistic_emails_arrive_unchanged(full_stack, real):
    """Latin, CJK, Arabic, Indic, emoji; 100 kB; long lines, odd line ends, conditional comments."""
    sent = full_stack.send(
        subject=real.subject, html=real.html, to=f"{real.name}@corpus.example", trackOpens=False, trackClicks=False
    )
    assert sent.status == 202
    wait_for(lambda: delivered(full_stack, sent.body["id"]), seconds=60, what="the delivery")
    ((source,),) = full_stack.query(
        "SELECT source FROM inbox_caughtmail WHERE recipient = %s", f"{real.name}@corpus.example"
    )
    message = email.message_from_bytes(source, policy=policy.default)
    text, html = message.iter_parts()
    before, footer, after = FOOTER.split(html.get_payload(decode=True).decode())
    assert lines(before + after) == lines(real.html)
    assert "/u/" in footer
    assert message["Subject"] == real.subject
    assert full_stack.call("GET", f"/emails/{sent.body['id']}").body["htmlContent"] == real.html
    assert text.get_content().strip()
    assert max(map(len, source.split(b"\r\n"))) <= 998
    assert source.isascii()
    assert b"\n" not in source.replace(b"\r\n", b"")
    assert b"\r" not in source.replace(b"\r\n", b"")
