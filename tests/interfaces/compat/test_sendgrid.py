"""SendGrid's API: requests, errors and resources as its clients expect them."""

import time
import uuid

import pytest

from emails.models import Attachment, Content, Email
from suppressions.services import suppress_addresses
from tests.conftest import make_key
from tests.emails.api.test_attachments import messages_by_address, parse_message, shape
from tests.interfaces.compat.conftest import Dialect
from tests.rows import each

pytestmark = pytest.mark.django_db


def mail(*recipients: str, **fields) -> dict:
    to = [{"to": [{"email": one}]} for one in recipients or ("ada@example.com",)]
    body = {
        "personalizations": to,
        "from": {"email": "hi@alice.example", "name": "Alice"},
        "subject": "Hi",
        "content": [{"type": "text/plain", "value": "Hi"}, {"type": "text/html", "value": "<p>Hi</p>"}],
        **fields,
    }
    return {name: value for name, value in body.items() if value is not None}


def error(response) -> tuple[int, str | None]:
    body = response.json()
    assert body.keys() == {"errors"}
    assert all(entry.keys() == {"message", "field", "help"} for entry in body["errors"])
    return response.status_code, body["errors"][0]["field"]


class TestSend:
    def test_an_email_with_everything_is_accepted(self, sendgrid):
        personalization = {
            "to": [{"email": "ada@example.com", "name": "L, Ada"}],
            "cc": [{"email": "carol@example.com"}],
            "bcc": [{"email": "dan@example.com"}],
            "headers": {"X-B": "2"},
            "custom_args": {"order": "7"},
        }
        files = [
            {"content": "QQ==", "filename": "a.txt", "type": "text/plain", "disposition": "attachment"},
            {"content": "iVBORw==", "filename": "l.png", "type": "image/png", "content_id": "logo"},
        ]
        group = sendgrid.post("/v3/asm/groups", {"name": "News", "description": ""}).json()["id"]
        body = mail(
            personalizations=[personalization],
            reply_to_list=[{"email": "a@alice.example"}, {"email": "b@alice.example"}],
            headers={"X-A": "1"},
            categories=["welcome"],
            custom_args={"run": "1"},
            attachments=files,
            tracking_settings={"click_tracking": {"enable": False}, "open_tracking": {"enable": False}},
            asm={"group_id": group},
            ip_pool_name="pool",
        )
        response = sendgrid.post("/v3/mail/send", body)
        assert (response.status_code, response.content) == (202, b"")
        row = Email.objects.get(id__isnull=False)
        assert uuid.UUID(response["X-Message-Id"])
        assert (row.to, row.cc, row.bcc) == (['"L, Ada" <ada@example.com>'], ["carol@example.com"], ["dan@example.com"])
        assert (row.headers, row.tags, row.stream) == ({"X-A": "1", "X-B": "2"}, ["welcome"], "news")
        assert row.metadata == {"run": "1", "order": "7"}
        assert (row.track_opens, row.track_clicks, row.reply_to) == (False, False, "a@alice.example, b@alice.example")
        assert (row.content.html, row.content.text) == ("<p>Hi</p>", "Hi")
        assert list(Attachment.objects.values_list("filename", "cid")) == [("a.txt", None), ("l.png", "logo")]

    def test_each_personalization_is_an_email_and_the_content_is_stored_once(self, sendgrid):
        addresses = [f"a{n}@example.com" for n in range(1000)]
        assert sendgrid.post("/v3/mail/send", mail(*addresses)).status_code == 202
        assert (Email.objects.count(), Content.objects.count()) == (1000, 1)
        assert error(sendgrid.post("/v3/mail/send", mail(*addresses, "one@example.com"))) == (400, "personalizations")

    def test_a_template_has_the_prefix_d(self, sendgrid, template):
        (listed,) = sendgrid.get("/v3/templates?generations=dynamic").json()["templates"]
        for template_id in ("d-hello", listed["id"]):
            to = {"to": [{"email": "ada@example.com"}], "dynamic_template_data": {"name": "Ada"}}
            # Substitutions are for content in the request.
            to["substitutions"] = {"Hi": "Bye"}
            body = mail(personalizations=[to], template_id=template_id, content=None, subject=None)
            assert sendgrid.post("/v3/mail/send", body).status_code == 202
        assert list(Email.objects.values_list("subject", flat=True)) == ["Hi Ada"] * 2
        assert sendgrid.get(f"/v3/templates/{listed['id']}").json()["versions"][0]["html_content"] == "<p>{{name}}</p>"

    def test_a_calendar_and_amp_are_alternatives(self, sendgrid):
        invitation, amp = "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n", "<html amp4email></html>"
        content = [
            {"type": "text/plain", "value": "Hi"},
            {"type": "text/x-amp-html", "value": amp},
            {"type": "text/html", "value": "<p>Hi</p>"},
            {"type": "text/calendar", "value": invitation},
        ]
        assert sendgrid.post("/v3/mail/send", mail(content=content)).status_code == 202
        (source,) = messages_by_address().values()
        assert shape(parse_message(source)) == (
            "alternative", "text/plain", "text/x-amp-html", "text/html", "text/calendar",
        )  # fmt: skip
        calendar = Attachment.objects.get(filename="invite.ics")
        assert (calendar.content_type, bytes(calendar.data)) == ("text/calendar; method=REQUEST", invitation.encode())

    @each("parts", [["text/html", "text/html"], ["text/html", "TEXT/HTML; charset=utf-8"], ["text/html", "image/png"]])
    def test_content_that_would_be_lost_is_refused(self, sendgrid, parts):
        content = [{"type": type_, "value": "Hi"} for type_ in parts]
        assert error(sendgrid.post("/v3/mail/send", mail(content=content))) == (400, "content")
        assert not Email.objects.exists()

    def test_a_subject_is_required_of_the_request_or_of_every_personalization(self, sendgrid):
        own = [{"to": [{"email": "ada@example.com"}], "subject": "Mine"}]
        for change in ({"subject": None}, {"subject": ""}):
            assert error(sendgrid.post("/v3/mail/send", mail(**change))) == (400, "subject")
            assert sendgrid.post("/v3/mail/send", mail(personalizations=own, **change)).status_code == 202
        assert [*Email.objects.values_list("subject", flat=True)] == ["Mine", "Mine"]

    def test_substitutions_replace_text_of_each_personalization(self, sendgrid):
        to = [{"to": [{"email": f"{name}@example.com"}], "substitutions": {"-name-": name}} for name in ("ada", "bob")]
        content = [{"type": "text/html", "value": "<p>-name-</p>"}]
        sendgrid.post("/v3/mail/send", mail(personalizations=to, subject="Hi -name-", content=content))
        rows = Email.objects.order_by("subject").values_list("subject", "content__html")
        assert list(rows) == [("Hi ada", "<p>ada</p>"), ("Hi bob", "<p>bob</p>")]

    @each("value", [42, 0, 1.5, True, False, ["a"], {"a": "b"}])
    @pytest.mark.usefixtures("template")
    def test_substitutions_that_are_no_text_are_refused(self, sendgrid, value):
        plain = {"to": [{"email": "ada@example.com"}], "substitutions": {"-a-": "x", "[b]": None}}
        other = {"to": [{"email": "bob@example.com"}], "substitutions": {"[amount]": value}}
        for change in ({}, {"template_id": "d-hello", "content": None}):
            refused = sendgrid.post("/v3/mail/send", mail(personalizations=[plain, other], **change))
            assert error(refused) == (400, "personalizations.1.substitutions.[amount]")
        assert not Email.objects.exists()

    def test_null_is_an_empty_text_and_a_name_is_not_empty(self, sendgrid):
        to = {"to": [{"email": "ada@example.com"}], "substitutions": {"-a-": None}}
        content = [{"type": "text/plain", "value": "You owe -a- EUR"}]
        assert sendgrid.post("/v3/mail/send", mail(personalizations=[to], content=content)).status_code == 202
        assert Email.objects.get().content.text == "You owe  EUR"
        refused = sendgrid.post("/v3/mail/send", mail(personalizations=[{**to, "substitutions": {"": "x"}}]))
        assert error(refused) == (400, "personalizations.0.substitutions")

    @each(
        ("field", "setting"),
        [
            ("mail_settings.bypass_list_management", {"enable": True}),
            ("mail_settings.bypass_bounce_management", {"enable": True}),
            ("mail_settings.bypass_spam_management", {"enable": True}),
            ("mail_settings.footer", {"enable": True, "text": "Bye"}),
            ("mail_settings.bcc", {"enable": True, "email": "a@example.com"}),
            ("mail_settings.new", {"enable": "true"}),
            ("tracking_settings.ganalytics", {"enable": True, "utm_source": "a"}),
        ],
    )
    def test_an_enabled_setting_without_an_equivalent_is_refused(self, sendgrid, field, setting):
        group, name = field.split(".")
        assert error(sendgrid.post("/v3/mail/send", mail(**{group: {name: setting}}))) == (400, field)
        assert sendgrid.post("/v3/mail/send", mail(**{group: {name: {"enable": False}}})).status_code == 202
        assert sendgrid.post("/v3/mail/send", mail(**{group: {name: None}})).status_code == 202

    def test_sections_are_refused(self, sendgrid):
        assert error(sendgrid.post("/v3/mail/send", mail(sections={":a": "b"}))) == (400, "sections")
        assert sendgrid.post("/v3/mail/send", mail(sections={})).status_code == 202

    def test_the_tag_of_the_pixel_is_removed(self, sendgrid):
        tracking = {"open_tracking": {"enable": True, "substitution_tag": "%open-track%"}}
        content = [{"type": "text/html", "value": "<p>Hi</p>%open-track%"}]
        assert sendgrid.post("/v3/mail/send", mail(content=content, tracking_settings=tracking)).status_code == 202
        assert Email.objects.get().content.html == "<p>Hi</p>"

    def test_substitutions_are_bounded(self, sendgrid):
        to = {"to": [{"email": "ada@example.com"}], "substitutions": {"a": "b" * 100}}
        content = [{"type": "text/html", "value": "a" * 500_000}]
        refused = sendgrid.post("/v3/mail/send", mail(personalizations=[to], content=content))
        assert error(refused) == (413, None)
        many = {"to": to["to"], "substitutions": {f"-{n}-": "" for n in range(1000)}}
        assert error(sendgrid.post("/v3/mail/send", mail(personalizations=[many], content=content))) == (413, None)

    def test_send_at_schedules_and_a_past_time_sends_now(self, sendgrid):
        sendgrid.post("/v3/mail/send", mail(send_at=int(time.time()) + 3600))
        sendgrid.post("/v3/mail/send", mail(send_at=1))
        assert sorted(Email.objects.values_list("status", flat=True)) == ["queued", "scheduled"]

    def test_sandbox_mode_checks_and_sends_nothing(self, sendgrid):
        sandbox = {"sandbox_mode": {"enable": True}}
        assert sendgrid.post("/v3/mail/send", mail(mail_settings=sandbox)).status_code == 200
        refused = sendgrid.post("/v3/mail/send", mail("nobody", mail_settings=sandbox))
        assert error(refused) == (400, "personalizations.0.to.0.email")
        assert not Email.objects.exists()

    def test_a_suppressed_recipient_is_accepted(self, sendgrid, alice):
        suppress_addresses(alice.workspace, addresses=["ada@example.com"], reason="bounce")
        assert sendgrid.post("/v3/mail/send", mail()).status_code == 202

    def test_a_repeated_idempotency_key_returns_the_first_response(self, sendgrid):
        first = sendgrid.post("/v3/mail/send", mail(), idempotency_key="k")
        again = sendgrid.post("/v3/mail/send", mail(), idempotency_key="k")
        assert again["X-Message-Id"] == first["X-Message-Id"]
        assert Email.objects.count() == 1


class TestErrors:
    @each(
        ("change", "expected"),
        [
            ({"personalizations": None}, (400, "personalizations")),
            ({"personalizations": [{}]}, (400, "personalizations.0.to.email")),
            ({"from": None}, (400, "from")),
            ({"from": {"email": "hi@elsewhere.example"}}, (403, "from")),
            ({"content": None}, (400, "content")),
            ({"content": {}}, (400, "content")),
            ({"template_id": "d-none", "content": None}, (400, "template_id")),
            ({"categories": ["x"] * 11}, (400, "categories")),
            ({"send_at": "soon"}, (400, "send_at")),
            ({"reply_to": {"email": "x"}}, (400, "reply_to.0")),
        ],
    )
    def test_an_invalid_email_names_sendgrids_field(self, sendgrid, change, expected):
        assert error(sendgrid.post("/v3/mail/send", mail(**change))) == expected
        assert not Email.objects.exists()

    def test_one_invalid_personalization_refuses_all(self, sendgrid):
        refused = sendgrid.post("/v3/mail/send", mail("ada@example.com", "nobody"))
        assert error(refused) == (400, "personalizations.1.to.0.email")
        assert not Email.objects.exists()

    def test_keys(self):
        for key in (None, "SG.x"):
            assert error(Dialect("sendgrid", key).post("/v3/mail/send", mail())) == (401, None)

    def test_an_absent_endpoint_is_501_and_names_the_page(self, sendgrid):
        response = sendgrid.get("/v3/marketing/contacts")
        assert error(response) == (501, None)
        assert "/docs/migrate/sendgrid." in response.json()["errors"][0]["message"]
        assert error(sendgrid.call("PATCH", "/v3/mail/send")) == (501, None)

    def test_an_argument_has_a_name(self, sendgrid):
        assert error(sendgrid.post("/v3/mail/send", mail(custom_args={"": "x"}))) == (400, "custom_args")


def test_scopes_are_those_of_the_key(sendgrid, alice):
    assert "mail.send" in sendgrid.get("/v3/scopes").json()["scopes"]
    reading = Dialect("sendgrid", make_key(alice.workspace, "read_only"))
    assert "mail.send" not in reading.get("/v3/scopes").json()["scopes"]


def test_rate_limits_have_sendgrids_headers(sendgrid, settings):
    settings.RATE_LIMIT = (1, 1)
    response = sendgrid.get("/v3/scopes")
    assert response["X-RateLimit-Limit"] == "1"
    assert abs(int(response["X-RateLimit-Reset"]) - time.time()) < 5
    assert error(sendgrid.get("/v3/scopes")) == (429, None)
