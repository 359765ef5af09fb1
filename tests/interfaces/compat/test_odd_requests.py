"""Odd requests to every endpoint of every dialect: an error of the dialect, and never one of the server."""

import json
import time
from itertools import product
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.workspaces.account_status import suspend_workspace
from emails.models import Email
from streams.services import create_stream
from tests.conftest import make_domain, make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_every_endpoint import REQUESTS
from tests.interfaces.compat.test_tables import PLACEHOLDER
from tests.rows import each

pytestmark = pytest.mark.django_db

FROM = "hi@alice.example"
ODD: list[Any] = [
    None, True, False, 0, -1, 10**60, 1.5, "", " ", "\r\nBcc: x@example.com", "\u202e", "a" * 70_000, "é😀", [], [None],
    [[]], [{}], [1], ["a"], [10**30], {}, {"a": None}, {"a": {"b": [1]}}, {"data": [256]},
]  # fmt: skip
RESEND = {
    "from": FROM, "to": ["ada@example.com"], "cc": "bob@example.com", "bcc": [], "reply_to": FROM, "subject": "Hi",
    "html": "Hi", "text": "Hi", "tags": [{"name": "a", "value": "b"}], "headers": {"X-A": "1"},
    "attachments": [{"filename": "a", "content": "QQ==", "content_type": "text/plain", "content_id": "a"}],
    "topic_id": "main", "scheduled_at": "in 1 min", "template": {"id": "hello", "variables": {"a": "b"}},
}  # fmt: skip
POSTMARK = {
    "From": FROM, "To": "ada@example.com", "Cc": "", "Bcc": "", "ReplyTo": FROM, "Subject": "Hi", "HtmlBody": "Hi",
    "TextBody": "Hi", "Tag": "a", "Metadata": {"a": "b"}, "Headers": [{"Name": "X-A", "Value": "1"}],
    "Attachments": [{"Name": "a", "Content": "QQ==", "ContentType": "text/plain", "ContentID": "cid:a"}],
    "TrackOpens": True, "TrackLinks": "None", "MessageStream": "outbound",
}  # fmt: skip
TEMPLATED = {**POSTMARK, "TemplateAlias": "hello", "TemplateId": 1, "TemplateModel": {"a": "b"}}
PERSONALIZATION = {
    "to": [{"email": "ada@example.com", "name": "Ada"}], "cc": [], "bcc": [], "from": {"email": FROM}, "subject": "Hi",
    "headers": {"X-A": "1"}, "custom_args": {"a": "b"}, "substitutions": {"a": "b"}, "dynamic_template_data": {"a": 1},
    "send_at": 1,
}  # fmt: skip
SENDGRID = {
    "personalizations": [PERSONALIZATION], "from": {"email": FROM, "name": "A"}, "reply_to": {"email": FROM},
    "reply_to_list": [{"email": FROM}], "subject": "Hi", "content": [{"type": "text/plain", "value": "Hi"}],
    "attachments": [{"content": "QQ==", "filename": "a", "type": "text/plain", "content_id": "a"}],
    "headers": {"X-A": "1"}, "categories": ["a"], "custom_args": {"a": "b"}, "send_at": 1, "template_id": "d-hello",
    "tracking_settings": {"open_tracking": {"enable": True}, "click_tracking": {"enable": True}},
    "mail_settings": {"sandbox_mode": {"enable": False}, "bypass_unsubscribe_management": {"enable": False}},
    "asm": {"group_id": 1, "groups_to_display": [1]},
}  # fmt: skip
TEMPLATE = {"Name": "a", "Alias": "a", "Subject": "a", "HtmlBody": "a", "TextBody": "a", "TestRenderModel": {"a": 1}}
RESEND_TEMPLATE = {
    "name": "a", "alias": "a", "subject": "a", "html": "{{A}}", "text": "a",
    "variables": [{"key": "A", "type": "string", "fallback_value": "a"}],
}  # fmt: skip
VERSION = {"subject": "a", "html_content": "a", "plain_content": "a", "active": 1}
SUPPRESSIONS = {"Suppressions": [{"EmailAddress": "ada@example.com"}]}
# The body of each operation that has one.
BODIES: dict[tuple[str, str, str], Any] = {
    ("resend", "POST", "/emails"): RESEND,
    ("resend", "POST", "/emails/batch"): [{name: RESEND[name] for name in RESEND.keys() - {"attachments"}}],
    ("resend", "PATCH", "/emails/:email"): {"scheduled_at": "in 1 min"},
    ("resend", "POST", "/emails/:email/cancel"): {},
    ("resend", "POST", "/domains"): {"name": "b.example", "tls": "enforced"},
    ("resend", "POST", "/templates"): RESEND_TEMPLATE,
    ("resend", "PATCH", "/templates/hello"): RESEND_TEMPLATE,
    ("resend", "POST", "/topics"): {
        "name": "a",
        "description": "a",
        "default_subscription": "opt_in",
        "visibility": "public",
    },
    ("resend", "POST", "/suppressions"): {"email": "ada@example.com"},
    ("resend", "POST", "/suppressions/batch/add"): {"emails": ["ada@example.com"]},
    ("resend", "POST", "/suppressions/batch/remove"): {"emails": ["ada@example.com"], "ids": ["a"]},
    ("resend", "POST", "/webhooks"): {"endpoint": "https://example.com/", "events": ["email.sent"]},
    ("postmark", "POST", "/email"): POSTMARK,
    ("postmark", "POST", "/email/batch"): [POSTMARK],
    ("postmark", "POST", "/email/withTemplate"): TEMPLATED,
    ("postmark", "POST", "/email/batchWithTemplates"): {"Messages": [TEMPLATED]},
    ("postmark", "POST", "/email/bulk"): {
        "From": FROM,
        "Subject": "Hi",
        "TextBody": "Hi {{a}}",
        "Tag": "a",
        "Metadata": {"a": "b"},
        "Messages": [
            {"To": "ada@example.com", "TemplateModel": {"a": "b"}, "Headers": [{"Name": "X-A", "Value": "1"}]}
        ],
    },
    ("postmark", "POST", "/templates"): TEMPLATE,
    ("postmark", "POST", "/templates/validate"): TEMPLATE,
    ("postmark", "PUT", "/templates/hello"): TEMPLATE,
    ("postmark", "DELETE", "/templates/hello"): {},
    ("postmark", "POST", "/message-streams"): {
        "ID": "a",
        "Name": "a",
        "Description": "a",
        "MessageStreamType": "Broadcasts",
        "SubscriptionManagementConfiguration": {"UnsubscribeHandlingType": "Postmark"},
    },
    ("postmark", "POST", "/message-streams/outbound/suppressions"): SUPPRESSIONS,
    ("postmark", "POST", "/message-streams/outbound/suppressions/delete"): SUPPRESSIONS,
    ("postmark", "POST", "/webhooks"): {"Url": "https://a.example/", "Triggers": {"Open": {"Enabled": True}}},
    ("sendgrid", "POST", "/v3/mail/send"): SENDGRID,
    ("sendgrid", "DELETE", "/v3/suppression/bounces/ada@example.com"): {},
    ("sendgrid", "POST", "/v3/user/scheduled_sends"): {"batch_id": "a", "status": "cancel"},
    ("sendgrid", "DELETE", "/v3/suppression/bounces"): {"delete_all": False, "emails": ["ada@example.com"]},
    ("sendgrid", "POST", "/v3/asm/suppressions/global"): {"recipient_emails": ["ada@example.com"]},
    ("sendgrid", "POST", "/v3/asm/groups"): {"name": "a", "description": "a", "is_default": False},
    ("sendgrid", "POST", "/v3/asm/groups/1/suppressions"): {"recipient_emails": ["ada@example.com"]},
    ("sendgrid", "POST", "/v3/templates"): {"name": "a", "generation": "dynamic"},
    ("sendgrid", "POST", "/v3/templates/d-hello/versions"): VERSION,
    ("sendgrid", "POST", "/v3/whitelabel/domains"): {"domain": "no domain"},
    ("sendgrid", "PATCH", "/v3/user/webhooks/event/settings"): {
        "enabled": True,
        "url": "https://a.example/",
        "open": True,
    },
}
READS = [
    (dialect, PLACEHOLDER.sub(":odd", line.removeprefix("GET ").partition("?")[0]))
    for dialect, requests in REQUESTS.items()
    for line in requests
    if line.startswith("GET ")
]
PARAMETERS = (
    "limit", "after", "before", "count", "offset", "recipient", "subject", "tag", "EmailAddress", "fromdate", "status",
    "origin", "generations", "page_size", "messageID", "todate", "start_time", "start_date",
    "domain", "messagestream", "MessageStreamType", "includeArchivedStreams", "id",
)  # fmt: skip
ODD_TEXTS = (
    "%00", "a%00b", "%ff", "%ed%a0%80", "9" * 5000, "0000010000000", "-1", "1.5", "%F0%9F%98%80", "a" * 3000, "%25_",
    "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
)  # fmt: skip
ODD_SOURCES = (
    b"", b"null", b"[", b"\xff", b'"\\ud800"', b'{"From": "\\u0000"}', b"1e999", b"NaN", b"[" * 100_000,
    b'{"a":1,"a":2}',
)  # fmt: skip
MEMBERS = {"resend": {"statusCode", "name", "message"}, "postmark": {"ErrorCode", "Message"}, "sendgrid": {"errors"}}


def variants(value: Any) -> Any:
    """Yield the body with each of its values, at any depth, replaced by each odd one."""
    yield from ODD
    if isinstance(value, dict):
        for name in value:
            yield {key: inner for key, inner in value.items() if key != name}
            yield from ({**value, name: inner} for inner in variants(value[name]))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], inner, *value[index + 1 :]] for inner in variants(item))


def is_of_dialect(name: str, response: Any) -> bool:
    """Return whether a response is a success, or an error that is not the server's with the dialect's members."""
    if response.status_code < 400:
        return True
    is_clients = response.status_code < 500 or response.status_code == 501
    return is_clients and response.json().keys() == MEMBERS[name]


@pytest.fixture
def dialects(alice, settings):
    settings.RATE_LIMIT = None
    make_domain(alice.workspace, "alice.example")
    # Group 1 of SendGrid's API.
    create_stream(alice.workspace, slug="news", name="News", kind="bulk")
    key = make_key(alice.workspace)
    return {name: Dialect(name, key) for name in ("resend", "postmark", "sendgrid")}


@pytest.fixture
def email(dialects) -> str:
    assert dialects["resend"].post("/templates", {**RESEND_TEMPLATE, "alias": "hello"}).status_code == 201
    body = {**RESEND, "scheduled_at": "in 1 hour", "template": None}
    return dialects["resend"].post("/emails", body).json()["id"]


# Operations whose fields are read as those of another one.
REPEATED = {
    "/emails/batch", "/email/batch", "/email/withTemplate", "/email/batchWithTemplates", "/templates/hello",
    "/templates/validate",
}  # fmt: skip


# Each operation has every fifth variant of its body, or every twentieth if another one reads the same fields, and all
# with --long. They begin with another one each.
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])
@each(("number", "name", "method", "path"), [(number, *operation) for number, operation in enumerate(BODIES)])
def test_an_odd_value_anywhere_in_a_body_is_an_error_of_the_dialect(dialects, email, number, name, method, path, step):
    wrong = []
    for body in list(variants(BODIES[name, method, path]))[number % step :: step * (4 if path in REPEATED else 1)]:
        response = dialects[name].call(method, path.replace(":email", email), body)
        if not is_of_dialect(name, response):
            wrong.append((response.status_code, json.dumps(body)[:300]))
    assert not wrong


@each(("name", "method", "path"), BODIES)
def test_a_body_that_is_not_json_is_an_error_of_the_dialect(dialects, email, name, method, path):
    client = dialects[name]
    url = f"/compat/{name}{path.replace(':email', email)}"
    for source in ODD_SOURCES:
        response = client.client.generic(method, url, source, "application/json", headers=client.headers)
        assert is_of_dialect(name, response), source


# Each parameter has another text at each path, and all texts with --long.
@pytest.mark.parametrize("count", [1, pytest.param(len(ODD_TEXTS), marks=pytest.mark.long)])
@each(("number", "name", "path"), [(number, *read) for number, read in enumerate(READS)])
def test_odd_ids_and_parameters_are_an_error_of_the_dialect(dialects, email, number, name, path, count):
    for text in ODD_TEXTS:
        assert is_of_dialect(name, dialects[name].get(path.replace(":odd", text))), text
    for index, parameter in enumerate(PARAMETERS, start=number):
        for text in (ODD_TEXTS * 2)[index % len(ODD_TEXTS) :][:count]:
            response = dialects[name].get(f"{path.replace(':odd', 'x')}?{parameter}={text}")
            assert is_of_dialect(name, response), (parameter, text)


SENDING = [call for call in BODIES if "mail" in call[2].partition("@")[0] and not call[2].endswith("/cancel")]


@each(("name", "method", "path"), SENDING)
def test_a_suspended_workspace_cannot_send(dialects, email, alice, name, method, path):
    suspend_workspace(alice.workspace, reason="spam")
    # Another key: the status of the workspace is cached with the key for a few seconds.
    client = Dialect(name, make_key(alice.workspace))
    response = client.call(method, path.replace(":email", email), BODIES[name, method, path])
    assert response.status_code == {"postmark": 422}.get(name, 403)
    assert response.json().keys() == MEMBERS[name]
    assert "suspended" in response.content.decode()
    assert Email.objects.values_list("status", flat=True).get() == "scheduled"


@each("name", MEMBERS)
def test_other_methods_are_an_error_of_the_dialect(dialects, name):
    paths = {path for dialect, *_, path in (*READS, *BODIES) if dialect == name} | {"/absent"}
    for path, method in product(paths, ("OPTIONS", "PUT", "TRACE")):
        assert is_of_dialect(name, dialects[name].call(method, path)), (method, path)


def test_lists_do_not_read_the_data_of_templates(dialects, email):
    for name, path in (("resend", "/emails"), ("postmark", "/messages/outbound"), ("postmark", "/bounces")):
        with CaptureQueriesContext(connection) as queries:
            assert dialects[name].get(path).status_code == 200
        assert not [query for query in queries if "template_data" in query["sql"] or "email_content" in query["sql"]]


def test_a_long_request_is_refused_before_it_takes_much_processor_time(dialects, monkeypatch):
    domain = ".".join(["ü" * 30, *["ü" * 20] * 6, "example"])
    slow = ",".join(f"ü{n}@{domain}" for n in range(49))
    names = {f"a{n}": "" for n in range(100_000)}
    to = [{"to": [{"email": "ada@example.com"}]}] * 1000
    requests = [
        ("postmark", "/email/batch", [{**POSTMARK, "To": slow, "Cc": slow, "Bcc": slow}] * 450),
        ("sendgrid", "/v3/mail/send", {**SENDGRID, "personalizations": to, "custom_args": names}),
        ("sendgrid", "/v3/mail/send", {**SENDGRID, "personalizations": to, "headers": names}),
        ("sendgrid", "/v3/mail/send", {**SENDGRID, "personalizations": to, "subject": "a" * 10_000_000}),
    ]
    monkeypatch.setattr("interfaces.compat.drafts.MAX_READ_SECONDS", 0.1)
    for name, path, body in requests:
        started = time.process_time()
        assert dialects[name].post(path, body).status_code in {400, 413, 422}
        assert time.process_time() - started < 5


def test_internationalized_recipients_are_accepted_listed_and_suppressed(dialects):
    sent = dialects["postmark"].post("/email", {**POSTMARK, "To": "Ada <üda@example.com>"})
    assert sent.status_code == 200
    (message,) = dialects["postmark"].get("/messages/outbound").json()["Messages"]
    assert message["Recipients"] == ["üda@example.com"]
    details = dialects["postmark"].get(f"/messages/outbound/{message['MessageID']}/details")
    assert details.json()["To"] == [{"Email": "üda@example.com", "Name": "Ada"}]
    entries = {"Suppressions": [{"EmailAddress": "üda@example.com"}]}
    suppressed = dialects["postmark"].post("/message-streams/outbound/suppressions", entries)
    assert suppressed.json()["Suppressions"][0]["Status"] == "Suppressed"


class TestBounds:
    @each("limit", ["0000010000000", "00000010"])
    def test_the_limit_of_a_page_has_few_digits(self, dialects, limit):
        assert dialects["resend"].get(f"/emails?limit={limit}").status_code == 422

    def test_a_missing_time_does_not_send_a_scheduled_email(self, dialects, email):
        for body in ({}, {"scheduled_at": None}):
            assert dialects["resend"].call("PATCH", f"/emails/{email}", body).status_code == 422
        assert Email.objects.get().status == "scheduled"

    def test_substitutions_do_not_exceed_the_limits_of_fields(self, dialects):
        for field, key, size in (("subject", "Hi", 999), ("content.0.value", "Hi", 1024 * 1024 + 1)):
            content = [{"type": "text/html", "value": "<p>Hi</p>" if field != "subject" else "-"}]
            personalization = {**PERSONALIZATION, "substitutions": {key: "a" * size}, "subject": "Hi"}
            body = {**SENDGRID, "personalizations": [personalization], "content": content, "template_id": None}
            response = dialects["sendgrid"].post("/v3/mail/send", body)
            assert response.status_code == 400
        control = {**PERSONALIZATION, "substitutions": {"Hi": "\u202e"}}
        body = {**SENDGRID, "personalizations": [control], "template_id": None}
        assert dialects["sendgrid"].post("/v3/mail/send", body).status_code == 400

    def test_all_personalizations_have_a_thousand_recipients_at_most(self, dialects):
        to = [{"to": [{"email": f"a{n}-{m}@example.com"} for m in range(2)]} for n in range(501)]
        body = {**SENDGRID, "personalizations": to, "template_id": None}
        assert dialects["sendgrid"].post("/v3/mail/send", body).status_code == 400

    def test_long_keys_count_more_in_the_budget_of_substitutions(self, dialects):
        keys = {f"{'a' * 48}{n:04d}{'a' * 50}": "" for n in range(10_000)}
        content = [{"type": "text/html", "value": "a" * 29_000}]
        personalization = {**PERSONALIZATION, "substitutions": keys}
        body = {**SENDGRID, "personalizations": [personalization], "content": content, "template_id": None}
        assert dialects["sendgrid"].post("/v3/mail/send", body).status_code == 413


def test_an_error_of_the_server_is_logged_with_its_cause(dialects, monkeypatch, caplog):
    monkeypatch.setattr("interfaces.compat.resend.requests.read_email", lambda _: 1 / 0)
    assert dialects["resend"].post("/emails", RESEND).status_code == 500
    assert any(record.exc_info for record in caplog.records if record.name == "postrider.errors")
