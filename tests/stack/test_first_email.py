"""From an accepted request to a delivered email, over real HTTP and real SMTP."""

import email
import re
import time
from email import policy

import pytest

from core.lib.ids import to_uuid
from tests.corpus import emails
from tests.stack.limits import limited
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


@limited(1)
def test_the_first_email_is_delivered_within_a_second_of_readiness(stack, limit):
    stack.start("service", WORKER_CONCURRENCY="1")
    started = time.monotonic()
    email_id = stack.send().body["id"]
    wait_for(lambda: delivered(stack, email_id), seconds=60, what="the delivery")
    assert time.monotonic() - started < limit


def test_the_service_is_not_ready_without_a_worker(stack):
    stack.start("web")
    assert not stack.is_ready()
    stack.start("worker")
    wait_for(stack.is_ready, seconds=60, what="the worker takes mail")


@limited(2)
def test_an_email_is_delivered_within_two_seconds(full_stack, limit):
    warm = full_stack.send().body["id"]
    wait_for(lambda: delivered(full_stack, warm), seconds=60, what="a warm worker")
    started = time.monotonic()
    email_id = full_stack.send().body["id"]
    wait_for(lambda: delivered(full_stack, email_id), seconds=60, what="the delivery")
    assert time.monotonic() - started < limit
    assert timeline(full_stack, email_id) == ["queued", "sent", "delivered"]


def test_realistic_emails_arrive_unchanged(full_stack):
    """Latin, CJK, Arabic, Indic, emoji; 100 kB; long lines, odd line ends, conditional comments."""
    sent = {real: send_unchanged(full_stack, real) for real in emails()}
    for real, email_id in sent.items():
        wait_for(lambda email_id=email_id: delivered(full_stack, email_id), seconds=60, what=real.name)
        assert full_stack.call("GET", f"/emails/{email_id}").body["htmlContent"] == real.html, real.name
        ((source,),) = full_stack.query("SELECT source FROM inbox_caughtmail WHERE email_id = %s", to_uuid(email_id))
        check_unchanged(real, source)


def send_unchanged(stack, real):
    fields = {"subject": real.subject, "html": real.html, "to": f"{real.name}@corpus.example"}
    sent = stack.send(**fields, trackOpens=False, trackClicks=False)
    assert sent.status == 202, real.name
    return sent.body["id"]


def check_unchanged(real, source):
    message = email.message_from_bytes(source, policy=policy.default)
    text, html = message.iter_parts()
    before, footer, after = FOOTER.split(html.get_payload(decode=True).decode())
    assert lines(before + after) == lines(real.html), real.name
    assert "/u/" in footer, real.name
    assert message["Subject"] == real.subject, real.name
    assert text.get_content().strip(), real.name
    assert max(map(len, source.split(b"\r\n"))) <= 998, real.name
    assert source.isascii(), real.name
    rest = source.replace(b"\r\n", b"")
    assert (b"\n" in rest, b"\r" in rest) == (False, False), real.name
