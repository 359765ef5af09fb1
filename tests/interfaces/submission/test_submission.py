"""The submission server over real SMTP: one email for each 250, with the content of the message."""

import asyncio
import smtplib

import pytest
from django.db import OperationalError, connection
from django.test import Client

from emails.models import Email, Recipient
from interfaces.submission import metrics
from interfaces.submission.metrics import read_reply_counts
from templates_app.content import TemplateContent
from templates_app.services import create_template
from tests.conftest import make_key
from tests.interfaces.submission.fixtures import MESSAGE, begin_message, run_submission
from tests.rows import each
from tests.stack.stack import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def test_replies_are_counted_for_the_metrics_of_web(workspace, settings, monkeypatch):
    def count(command: str, code: str) -> int:
        return dict(read_reply_counts()).get((command, code), 0)

    monkeypatch.setattr("interfaces.submission.metrics.SAVE_SECONDS", 0.05)
    metrics.replies.clear()
    with run_submission(settings, key=make_key(workspace)) as port:
        port.submit()
        port.submit(MESSAGE, "root")
        wait_for(lambda: (count("DATA", "250"), count("RCPT", "553")) == (1, 1), seconds=30, what="replies are saved")
    body = Client().get("/metrics").content.decode()
    assert 'postrider_submission_replies_total{code="553",command="RCPT"} 1.0' in body


def test_the_use_of_shares_is_in_the_metrics_of_web(workspace, settings, monkeypatch):
    monkeypatch.setattr("core.counters.smtp_usage.SAVE_SECONDS", 1.0)
    settings.SUBMISSION_SESSIONS = 4
    with run_submission(settings, key=make_key(workspace)) as port, port.client() as client:
        with pytest.raises(smtplib.SMTPException), port.client(), port.client():
            pass
        begin_message(client)
        client.send(b"x" * 20_000 + b"\r\n" + b"x" * 20_000)
        names = (
            "session_seconds_total",
            "receiving_byte_seconds_total",
            'refused_total{server="submission",share="address"}',
        )
        wait_for(lambda: all(name in metrics_page() for name in names), seconds=30, what="the use is saved")
        client.close()


def metrics_page() -> str:
    return Client().get("/metrics").content.decode()


def test_replies_are_counted_later_while_the_database_does_not_respond(transactional_db):
    async def refuse(step):
        raise OperationalError("down")

    async def run(step):
        await asyncio.get_running_loop().run_in_executor(None, step_with_own_connection, step)

    metrics.replies.clear()
    metrics.count_reply("AUTH", "535 5.7.8 Invalid")
    before = dict(read_reply_counts()).get(("AUTH", "535"), 0)
    asyncio.run(metrics.replies.save(refuse))
    asyncio.run(metrics.replies.save(run))
    asyncio.run(metrics.replies.save(run))
    assert dict(read_reply_counts())["AUTH", "535"] == before + 1


def step_with_own_connection(step):
    step()
    connection.close()


def test_a_message_becomes_an_email(port):
    code, text = port.submit()
    email = Email.objects.get()
    assert (code, text) == (250, f"2.0.0 Accepted as {email.id}")
    assert (email.sender, email.to, email.subject) == ("Alice <hi@alice.example>", ["ada@example.com"], "Hello")
    assert (email.content.text, email.content.html) == ("Hello Ada\n", "")
    assert (email.entrance, email.status) == ("smtp", "queued")
    assert list(Recipient.objects.values_list("address", flat=True)) == ["ada@example.com"]


@pytest.fixture
def strict_template(workspace):
    content = TemplateContent("Hello", "{{name}}")
    create_template(workspace, name="S", content=content, alias="strict", strict_variables=True)


@each(("lines", "reply"), [
    ("X-Postrider-Template: nope", "550 5.6.0 X-Postrider-Template: There is no template with the id or alias 'nope'."),
    ("X-Postrider-Stream: nope", "550 5.6.0 X-Postrider-Stream: There is no stream 'nope'."),
    ("X-PM-Message-Stream: nope", "550 5.6.0 X-PM-Message-Stream: There is no stream 'nope'."),
    ("Idempotency-Key: a\u00e9", "550 5.6.0 Idempotency-Key: "),
    ("X-Postrider-Template: strict\r\nX-Postrider-Template-Data: {}", "550 5.6.0 X-Postrider-Template-Data: "),
    ("X-Postrider-Template: strict", "550 5.6.0 X-Postrider-Template: "),
])  # fmt: skip
def test_a_refusal_names_the_header_that_caused_it(port, strict_template, lines, reply):
    code, text = port.submit(f"{lines}\r\n".encode() + MESSAGE)
    assert f"{code} {text}".startswith(reply)


def test_a_reused_idempotency_key_is_refused_by_the_name_of_its_header(port):
    for source, expected in ((MESSAGE, 250), (MESSAGE + b"More\r\n", 550)):
        code, text = port.submit(b"Resend-Idempotency-Key: order-1\r\n" + source)
        assert code == expected
    assert "Resend-Idempotency-Key: This idempotency key was used" in text


def test_a_quoted_local_part_is_refused_with_the_same_reason_in_rcpt_and_in_to(port):
    code, text = port.submit(MESSAGE, '"ada l"@example.com')
    in_header = port.submit(MESSAGE.replace(b"ada@", b'"ada l"@'))
    assert (code, *in_header) == (553, 550, f"5.6.0 To: {text.removeprefix('5.1.3 ')}")
    assert port.submit(MESSAGE, '"ada"@example.com')[0] == 250
    assert Recipient.objects.get().address == "ada@example.com"


# Header fields as programs write them, without the quotes that names need, and twice.
SPELLINGS = [
    ("From: hello@alice.example <hello@alice.example>", "To: ada@example.com <ada@example.com>"),
    ("From: [Demo] Alerts <hello@alice.example>", "To: bob@example.com; ada@example.com"),
    ("From: Demo @ Home <hello@alice.example>", "To: ada@example.com,"),
    ("From: Demo, Inc <hello@alice.example>", "To: Lovelace, Ada <ada@example.com>, bob@example.com;"),
    ("From: Demo: Alerts <hello@alice.example>", "To: bob@example.com", "To: ada@example.com"),
    ("From: hello@alice.example (Demo)", "To: undisclosed-recipients:;"),
    ("From: Demo <hello@alice.example>", "Comments: a", "Comments: b", "X-Received: by a", "X-Received: by b"),
    ("From: Demo <hello@alice.example>", "X-Virus-Scanned: amavis", "X-Virus-Scanned: amavis at relay"),
    ("From: Demo <hello@alice.example>", "X-Spam-Status: No", "X-Spam-Status: No, score=0",
     "X-Original-To: a@b.example", "X-Original-To: ada@example.com", *["Content-Type: text/plain; charset=utf-8"] * 2),
]  # fmt: skip


def test_spellings_of_programs_are_accepted(port):
    for fields in SPELLINGS:
        code, text = port.submit("\r\n".join([*fields, "Subject: t", "", "hi", ""]).encode())
        assert (code, fields) == (250, fields), text
    names = [email.sender.rpartition(" <")[0] for email in Email.objects.order_by("created_at")[:6]]
    quoted = ["hello@alice.example", "[Demo] Alerts", "Demo @ Home", "Demo, Inc", "Demo: Alerts"]
    assert names == [*(f'"{name}"' for name in quoted), "Demo"]
    assert {address for (address,) in Recipient.objects.values_list("address")} == {"ada@example.com"}
