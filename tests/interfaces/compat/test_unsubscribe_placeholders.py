"""Placeholders of the unsubscribe link: each recipient's own link is in their place, and no footer beside it."""

import re
from html import escape

import pytest

from core.delivery.message.footer import MAX_UNSUBSCRIBE_LINKS, UNSUBSCRIBE_PLACEHOLDER
from emails.links import read_unsubscribe
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
     "<%asm_preferences_raw_url%>", "<%asm_global_unsubscribe_raw_url%>", "https://{{{unsubscribe}}}",
     "%7B%7B%7Bunsubscribe%7D%7D%7D", "&#123;&lcub;{ unsubscribe&nbsp;}}}", "&lt;%asm_group_unsubscribe_raw_url%&gt;",
     "%3C%25asm_preferences_url%25%3E", "http://shop.example/<%asm_group_unsubscribe_url%>"],
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


@each("written", ["<%stop%>", "&lt;%stop%&gt;", "%3C%25stop%25%3E"])
def test_the_substitution_tag_of_a_request(sendgrid, written):
    tracking = {"subscription_tracking": {"enable": True, "substitution_tag": "<%stop%>"}}
    content = [
        {"type": "text/plain", "value": "<%stop%>"},
        {"type": "text/html", "value": f"<a href='{written}'>x</a>"},
    ]
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

    @each(
        "tag",
        ["{{{ pm:unsubscribe_url }}}", "http://{{{ pm:unsubscribe }}}", "%7B%7B%7B pm:unsubscribe %7D%7D%7D",
         "%7B%7B%7B%20pm%3Aunsubscribe_url%20%7D%7D%7D", "&#x7b;{{&nbsp;pm:unsubscribe }}}"],
    )  # fmt: skip
    def test_the_url_in_any_spelling(self, postmark, tag):
        sent = postmark_mail(HtmlBody=f'<a class="a" href="{tag}">x</a>', TextBody=f"Stop: {tag}")
        assert postmark.post("/email", sent).status_code == 200
        text, html = parts("ada@example.com")
        assert_linked(text, html, address="ada@example.com")
        assert re.fullmatch(r'.*<a class="a" href="[^"{%]+">x</a>.*', html, re.DOTALL)

    def test_the_url_as_visible_text(self, postmark):
        assert postmark.post("/email", postmark_mail(HtmlBody="<p>{{{ pm:unsubscribe_url }}}</p>")).status_code == 200
        _, html = parts("ada@example.com")
        assert re.search(r"<p>https?://[^<]+/u/[^<]+</p>", html)

    @each("name", ["Subject", "HtmlBody", "TextBody"])
    def test_a_placeholder_with_another_meaning_is_refused(self, postmark, name):
        content = {"Subject": "Hi", "TextBody": "Hi", name: "{{{ pm:preferences }}}"}
        for path, body in (
            ("/email", postmark_mail(**content)),
            ("/templates", {"Name": "T", "Alias": "t", **content}),
            ("/email/bulk", {"From": "hi@alice.example", **content, "Messages": [{"To": "bob@example.com"}]}),
        ):
            refused = postmark.post(path, body)
            assert refused.status_code == 422
            assert refused.json()["Message"].startswith(f"{name}: {{{{{{ pm:preferences }}}}}} is not supported here.")

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


@each("tag", ["{{{RESEND_UNSUBSCRIBE_URL}}}", "https://{{{ RESEND_UNSUBSCRIBE_URL }}}",
              "%7B%7B%7BRESEND_UNSUBSCRIBE_URL%7D%7D%7D", "%25unsubscribe_url%25"])  # fmt: skip
def test_resend_in_an_email_and_in_a_template(resend, tag):
    content = {"subject": "Hi", "html": f"<a href='{tag}'>x</a>", "text": f"Stop: {tag}"}
    resend.post("/templates", {"name": "T", "alias": "t", **content})
    email = {"from": "hi@alice.example", "to": "ada@example.com"}
    for body in ({**email, **content}, {**email, "to": "bob@example.com", "template": {"id": "t"}}):
        assert resend.post("/emails", body).status_code == 200
    for address, source in messages_by_address().items():
        message = parse_message(source)
        assert_linked(*(message.get_body((kind,)).get_content() for kind in ("plain", "html")), address=address)


def send(api, **content):
    """Return text and HTML of an email, and the codes of the warnings."""
    body = {"from": "hi@alice.example", "to": "ada@example.com", "subject": "Hi", **content}
    warnings = api.post("/emails/send", body).json().get("warnings", [])
    message = parse_message(messages_by_address()["ada@example.com"])
    bodies = [message.get_body((kind,)) for kind in ("plain", "html")]
    return *(body.get_content() if body else "" for body in bodies), [warning["code"] for warning in warnings]


@each(
    "target",
    [UNSUBSCRIBE_PLACEHOLDER, "http://%unsubscribe_url%", "https://%unsubscribe_url%/", "mailto:%unsubscribe_url%",
     "//%unsubscribe_url%", "https://shop.example/mail/%unsubscribe_url%", "./%unsubscribe_url%",
     "/mail/%unsubscribe_url%", "%25unsubscribe_url%25", "https://%2525unsubscribe_url%2525",
     "&#37;unsubscribe_url&percnt;", "HTTP://&#x25;unsubscribe_url&#037;"],
)  # fmt: skip
def test_the_placeholder_in_any_spelling_is_the_link(api, target):
    for attribute in (f'href="{target}"', f"class=a HREF = '{target}'", f"href={target} class=a"):
        text, html, warnings = send(api, html=f"<p>Hello</p><a {attribute}>Stop</a>", trackOpens=False)
        assert_linked(text, html, address="ada@example.com")
        found = re.search(r"""href ?= ?["']?([^"' ]+)["']? ?[^>]*>Stop""", html, re.IGNORECASE)
        assert LINK.fullmatch(found[1]), html
        assert warnings == []


@each("text", ["http://%unsubscribe_url%", "%25unsubscribe_url%25", "<https://shop.example/%unsubscribe_url%>",
               "Stop:%unsubscribe_url%", "(mailto:%unsubscribe_url%)"])  # fmt: skip
def test_the_placeholder_in_visible_text(api, text):
    plain, html, warnings = send(api, text=f"Hello\n{text}\n", html=f"<p>{escape(text)}</p>", trackOpens=False)
    assert_linked(plain, html, address="ada@example.com")
    for part in (plain, html):
        assert re.search(r"[\s<>(:;]https?://[^/]+/u/", part)
        assert "shop" not in part
        assert part.count("://") == 1
    assert warnings == []


@each(
    "html",
    ["<!-- %unsubscribe_url% -->", "<!--[if mso]><a href='%unsubscribe_url%'>x</a><![endif]-->",
     "<a href='https://shop.example/bye?link=%unsubscribe_url%'>x</a>", "<a href='https://a.example/#%unsubscribe_url%'>x</a>",
     "<a href='mailto:a@b.example?subject=%unsubscribe_url%'>x</a>", "<template>%unsubscribe_url%</template>",
     "<style>a { content: '%unsubscribe_url%' }</style>", "<img data-x='%25unsubscribe_url%25'>"],
)  # fmt: skip
def test_a_placeholder_that_nobody_can_follow_leaves_the_footer_and_warns(api, html):
    text, sent, warnings = send(api, html=f"<p>Hello</p>{html}", text="Hello")
    assert FOOTER in sent
    assert FOOTER in text
    assert "unsubscribe_placeholder_unused" in warnings


def test_the_placeholder_as_a_parameter_of_another_url(api):
    link = "https://shop.example/bye?link=%unsubscribe_url%"
    text, html, warnings = send(api, html=f'<a href="{link}">x</a>', text=f"Stop: {link}", trackClicks=True)
    for part in (text, html):
        assert FOOTER in part
        assert re.search(r"https://shop\.example/bye\?link=https?://[^/]+/u/", part)
    assert warnings == ["unsubscribe_placeholder_unused"]


def test_an_image_map(api):
    text, html, warnings = send(api, html='<map name="m"><area href="%unsubscribe_url%" alt="Unsubscribe"></map>')
    assert_linked(text, html, address="ada@example.com")
    assert re.search(r"Unsubscribe \(https?://", text)
    assert warnings == []


def test_a_template_and_its_first_recipient_warn_too(api):
    api.post("/templates", {"name": "T", "alias": "t", "subject": "S", "htmlContent": "<!--%unsubscribe_url%-->Hi"})
    body = {"from": "hi@alice.example", "templateId": "t", "recipients": [{"to": "ada@example.com"}]}
    (warning,) = api.post("/emails/batch", body).json()["warnings"]
    assert warning["code"] == "unsubscribe_placeholder_unused"


def test_the_placeholder_of_v1_and_the_footer_of_the_other_part(api):
    api.post("/emails/send", {"from": "hi@alice.example", "to": "ada@example.com", "subject": "Hi", "text": "Hi",
                              "html": f'<a href="{UNSUBSCRIBE_PLACEHOLDER}">x</a>'})  # fmt: skip
    text, html = parts("ada@example.com")
    assert (FOOTER in text, FOOTER in html) == (True, False)
    assert len(LINK.findall(html)) == 1
