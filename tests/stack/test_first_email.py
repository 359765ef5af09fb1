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
    """Line ends are CRLF in every mail (RFC 2045, section 2.8)."""
    return re.split("\r\n|\r|\n", text)


def delivered(stack, email_id):
    return stack.call("GET", f"/emails/{email_id}").body["status"] == "delivered"


def test_an_email_is_delivered_within_two_seconds(whole_stack):
    whole_stack.send()
    wait_for(whole_stack.all_delivered, seconds=20, what="a warm worker")
    started = time.monotonic()
    email_id = whole_stack.send().body["id"]
    wait_for(lambda: delivered(whole_stack, email_id), seconds=5, what="the delivery")
    assert time.monotonic() - started < 2
    assert timeline(whole_stack, email_id) == ["queued", "sent", "delivered"]


def test_each_recipient_gets_a_copy_with_the_common_headers(whole_stack):
    sent = whole_stack.send(
        to=["Ada <a@x.example>", "b@x.example"], cc=["c@x.example"], bcc=["d@x.example"], replyTo="r@x.example"
    )
    wait_for(lambda: delivered(whole_stack, sent.body["id"]), seconds=10, what="the delivery")
    rows = whole_stack.query(
        "SELECT c.recipient, c.source FROM inbox_caughtmail c JOIN emails_email e ON e.id = c.email_id "
        "JOIN emails_recipient r ON r.email_id = e.id WHERE r.address = 'd@x.example'"
    )
    copies = {address: email.message_from_bytes(source, policy=policy.default) for address, source in rows}
    assert copies.keys() == {"a@x.example", "b@x.example", "c@x.example", "d@x.example"}
    assert len({copy["Message-ID"] for copy in copies.values()}) == 4
    for address, source in rows:
        copy = copies[address]
        assert (copy["To"], copy["Cc"], copy["Reply-To"]) == (
            "Ada <a@x.example>, b@x.example",
            "c@x.example",
            "r@x.example",
        )
        assert b"d@x.example" not in source
        assert copy["Bcc"] is None


@pytest.mark.parametrize("real", emails(), ids=lambda real: real.name)
def test_real_emails_arrive_as_they_were_written(whole_stack, real):
    """Latin, CJK, Arabic, Indic, emoji; 100 kB; long lines, odd line ends, conditional comments."""
    sent = whole_stack.send(
        subject=real.subject, html=real.html, to=f"{real.name}@corpus.example", trackOpens=False, trackClicks=False
    )
    assert sent.status == 202
    wait_for(lambda: delivered(whole_stack, sent.body["id"]), seconds=10, what="the delivery")
    ((source,),) = whole_stack.query(
        "SELECT source FROM inbox_caughtmail WHERE recipient = %s", f"{real.name}@corpus.example"
    )
    message = email.message_from_bytes(source, policy=policy.default)
    text, html = message.iter_parts()
    before, footer, after = FOOTER.split(html.get_payload(decode=True).decode())
    assert lines(before + after) == lines(real.html)
    assert "/u/" in footer
    assert message["Subject"] == real.subject
    assert whole_stack.call("GET", f"/emails/{sent.body['id']}").body["htmlContent"] == real.html
    assert text.get_content().strip()
    assert max(map(len, source.split(b"\r\n"))) <= 998
    assert source.isascii()
    assert b"\n" not in source.replace(b"\r\n", b"")
    assert b"\r" not in source.replace(b"\r\n", b"")
