"""Placeholders of the unsubscribe link: each recipient's own link is in their place, and no footer beside it."""

import re

import pytest

from emails.links import MAX_UNSUBSCRIBE_LINKS, UNSUBSCRIBE_PLACEHOLDER, read_unsubscribe
from tests.emails.api.test_attachments import messages_by_address, parse_message
from tests.interfaces.compat.test_postmark import mail as postmark_mail
from tests.interfaces.compat.test_sendgrid import mail as sendgrid_mail
from tests.rows import each

pytestmark = pytest.mark.django_db

LINK = re.compile(r"https?://[^\"'<>\s]+/u/([A-Za-z0-9_-]+)")
FOOTER = "No longer want to receive these emails?"


def parts(address: str) -> tuple[str, str]:
    """Return text and HTML of the message to an address."""
    message = parse_message(messages_by_address()[address])
    return tuple(message.get_body((kind,)).get_content() for kind in ("plain", "html"))  # type: ignore[return-value]


def assert_linked(text: str, html: str, *, address: str) -> None:
    for part in (text, html):
        assert FOOTER not in part
        assert {read_unsubscribe(token).address for token in LINK.findall(part)} == {address}


@each(
    "tag",
    ["{{{unsubscribe}}}", "{{ unsubscribe }}", "{{{unsubscribe_preferences}}}", "<%asm_group_unsubscribe_raw_url%>",
     "<%asm_preferences_raw_url%>", "<%asm_global_unsubscribe_raw_url%>"],
)  # fmt: skip
def test_a_tag_of_sendgrid(sendgrid, tag):
    content = [
        {"type": "text/plain", "value": f"Stop: {tag}"},
        {"type": "text/html", "value": f'<a href="{tag}">x</a>'},
    ]
    assert sendgrid.post("/v3/mail/send", sendgrid_mail(content=content)).status_code == 202
    text, html = parts("ada@example.com")
    assert_linked(text, html, address="ada@example.com")
    assert tag not in text + html


def test_each_recipient_has_another_link(sendgrid):
    content = [{"type": "text/html", "value": '<a href="{{{unsubscribe}}}">x</a>'}]
    sendgrid.post("/v3/mail/send", sendgrid_mail("ada@example.com", "bob@example.com", content=content))
    messages = {address: parse_message(source) for address, source in messages_by_address().items()}
    found = {to: LINK.findall(one.get_body(("html",)).get_content()) for to, one in messages.items()}
    assert {to: read_unsubscribe(token).address for to, (token,) in found.items()} == {to: to for to in found}
    assert len(found) == 2


def test_the_substitution_tag_of_a_request(sendgrid):
    tracking = {"subscription_tracking": {"enable": True, "substitution_tag": "<%stop%>"}}
    content = [{"type": "text/plain", "value": "<%stop%>"}, {"type": "text/html", "value": "<a href='<%stop%>'>x</a>"}]
    sendgrid.post("/v3/mail/send", sendgrid_mail(content=content, tracking_settings=tracking))
    assert_linked(*parts("ada@example.com"), address="ada@example.com")


def test_a_short_tag_cannot_make_a_message_large(sendgrid):
    tracking = {"subscription_tracking": {"enable": True, "substitution_tag": "a"}}
    content = [{"type": "text/plain", "value": "a" * 10_000}]
    assert sendgrid.post("/v3/mail/send", sendgrid_mail(content=content, tracking_settings=tracking)).status_code == 202
    (source,) = messages_by_address().values()
    assert parse_message(source).get_content().count("/u/") == MAX_UNSUBSCRIBE_LINKS


def test_a_template_of_sendgrid(sendgrid):
    template = sendgrid.post("/v3/templates", {"name": "T", "generation": "dynamic"}).json()["id"]
    version = {
        "subject": "Hi",
        "html_content": "<a href='{{{unsubscribe}}}'>x</a>",
        "plain_content": "{{{unsubscribe}}}",
    }
    assert sendgrid.post(f"/v3/templates/{template}/versions", version).status_code == 201
    assert sendgrid.post("/v3/mail/send", sendgrid_mail(template_id=template, content=None)).status_code == 202
    assert_linked(*parts("ada@example.com"), address="ada@example.com")


class TestPostmark:
    def test_in_an_attribute_and_as_text(self, postmark):
        html = '<a href="{{{ pm:unsubscribe }}}">x</a> {{{pm:unsubscribe}}} {{{ pm:unsubscribe label="Bye & out" }}}'
        sent = postmark_mail(HtmlBody=html, TextBody="Stop: {{{ pm:unsubscribe }}}")
        assert postmark.post("/email", sent).status_code == 200
        text, html = parts("ada@example.com")
        assert_linked(text, html, address="ada@example.com")
        assert re.findall(r"<a href=\"[^\"]+\">([^<]+)</a>", html) == ["x", "Unsubscribe", "Bye &amp; out"]

    def test_in_a_template_and_in_a_bulk_request(self, postmark):
        content = {"Subject": "Hi", "HtmlBody": "<p>{{{ pm:unsubscribe }}}</p>", "TextBody": "{{{pm:unsubscribe}}}"}
        assert postmark.post("/templates", {"Name": "T", "Alias": "t", **content}).status_code == 200
        message = {"From": "hi@alice.example", "To": "ada@example.com", "TemplateAlias": "t", "TemplateModel": {}}
        assert postmark.post("/email/withTemplate", message).json()["ErrorCode"] == 0
        bulk = {
            "From": "hi@alice.example",
            **content,
            "Messages": [{"To": "bob@example.com", "TemplateModel": {"a": 1}}],
        }
        assert postmark.post("/email/bulk", bulk).status_code == 200
        messages = {to: parse_message(source) for to, source in messages_by_address().items()}
        for address, message in messages.items():
            assert_linked(*(message.get_body((kind,)).get_content() for kind in ("plain", "html")), address=address)
        assert messages.keys() == {"ada@example.com", "bob@example.com"}


def test_the_placeholder_of_v1_and_the_footer_of_the_other_part(api):
    api.post("/emails/send", {"from": "hi@alice.example", "to": "ada@example.com", "subject": "Hi", "text": "Hi",
                              "html": f'<a href="{UNSUBSCRIBE_PLACEHOLDER}">x</a>'})  # fmt: skip
    text, html = parts("ada@example.com")
    assert (FOOTER in text, FOOTER in html) == (True, False)
    assert len(LINK.findall(html)) == 1
