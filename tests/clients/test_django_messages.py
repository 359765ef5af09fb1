"""Messages of Django as arguments of the Python library: what Django's documentation shows has its place in the API."""

import pytest
from django.core.mail import EmailMessage, EmailMultiAlternatives
from postrider_client import Attachment, UnsupportedMessage
from postrider_client.django import fields_of

from tests.rows import each

ADA, BOB, EVE = "ada@example.com", "Bob <bob@example.com>", "eve@example.com"
ICS = "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n"


def recipients_of(headers=None, **fields):
    message = EmailMessage("Hi", "Hi", "hello@demo.example", headers=headers, **fields)
    found = fields_of(message)
    return {name: found[name] for name in ("to", "cc", "bcc", "envelope") if found[name]}


@each(("headers", "fields", "expected"), [
    ({}, {"to": [ADA], "cc": [BOB], "bcc": [EVE]}, {"to": [ADA], "cc": [BOB], "bcc": [EVE]}),
    ({}, {"bcc": [ADA, BOB]}, {"bcc": [ADA, BOB]}),
    ({}, {"cc": [ADA]}, {"cc": [ADA]}),
    ({"To": "undisclosed-recipients:;"}, {"to": [ADA]}, {"bcc": [ADA], "envelope": [ADA]}),
    ({"to": f"Ada <{ADA}>, {BOB}"}, {"to": [ADA, BOB]},
     {"to": [f'"Ada" <{ADA}>', '"Bob" <bob@example.com>'], "bcc": [ADA, BOB], "envelope": [ADA, BOB]}),
    ({"To": f'"Ada \\"A\\", L" <{ADA}>'}, {"to": [ADA]},
     {"to": [f'"Ada \\"A\\", L" <{ADA}>'], "bcc": [ADA], "envelope": [ADA]}),
    ({"To": f"[Ops] Ada <{ADA}>"}, {"to": [ADA]}, {"to": [f"[Ops] Ada <{ADA}>"], "bcc": [ADA], "envelope": [ADA]}),
    ({"To": "list@example.com"}, {"to": [ADA], "bcc": [EVE]},
     {"to": ["list@example.com"], "bcc": [EVE, ADA], "envelope": [ADA, EVE]}),
    ({"To": "list@example.com", "Cc": "all@example.com"}, {"bcc": [BOB]},
     {"to": ["list@example.com"], "cc": ["all@example.com"], "bcc": [BOB], "envelope": [BOB]}),
])  # fmt: skip
def test_the_recipients_and_those_that_headers_show(headers, fields, expected):
    assert recipients_of(headers, **fields) == expected


def test_the_headers_that_django_replaces():
    headers = {
        "Message-ID": "<1@app.example>",
        "From": "Other <o@demo.example>",
        "reply-to": "r@demo.example",
        "X-A": 1,
    }
    found = fields_of(EmailMessage("Hi", "Hi", "hello@demo.example", [ADA], headers=headers))
    assert (found["from_"], found["reply_to"]) == (headers["From"], headers["reply-to"])
    assert found["headers"] == {"X-A": "1", "X-Original-Message-ID": "<1@app.example>"}


def test_an_invitation_is_an_alternative():
    message = EmailMultiAlternatives("Hi", "Hi", "hello@demo.example", [ADA])
    message.attach_alternative("<p>Hi</p>", "text/html")
    message.attach_alternative(ICS, "text/calendar; method=REQUEST")
    message.attach_alternative(b"<html amp4email>", "text/x-amp-html; charset=utf-8")
    message.attach("invite.ics", ICS, "text/calendar")
    found = fields_of(message)
    attached, invitation, amp = found["attachments"]
    kind = "text/calendar; method=REQUEST; charset=utf-8"
    assert (found["text"], found["html"]) == ("Hi", "<p>Hi</p>")
    assert invitation == Attachment("invite.ics", ICS.encode(), kind, alternative=True)
    assert (amp.content, amp.content_type, amp.alternative) == (
        b"<html amp4email>", "text/x-amp-html; charset=utf-8", True,
    )  # fmt: skip
    assert (attached.filename, attached.alternative) == ("invite.ics", None)


def test_a_text_may_be_the_alternative_of_html():
    message = EmailMultiAlternatives("Hi", "<p>Hi</p>", "hello@demo.example", [ADA])
    message.content_subtype = "html"
    message.attach_alternative("Hi", "text/plain")
    found = fields_of(message)
    assert (found["text"], found["html"], found["attachments"]) == ("Hi", "<p>Hi</p>", [])


@each("kind", ["text/html", "text/plain", "application/json"])
def test_an_alternative_without_a_place_in_the_api_is_unsupported(kind):
    message = EmailMultiAlternatives("Hi", "Hi", "hello@demo.example", [ADA])
    message.attach_alternative("<p>Hi</p>", "text/html")
    message.attach_alternative("x", kind)
    with pytest.raises(UnsupportedMessage, match=kind):
        fields_of(message)
