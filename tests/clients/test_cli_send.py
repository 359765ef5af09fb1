"""`postrider send` and `postrider emails`."""

import json
import os
import re
import subprocess
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from uuid import uuid4

import pytest

from tests.clients.cli import PROGRAM
from tests.clients.faulty import Answer, proxy
from tests.clients.messages import someone
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


@pytest.fixture
def address():
    return someone()


def sender(to, subject="Hello"):
    return ("send", "--from", "Shop <hello@demo.example>", "--to", to, "--subject", subject)


def message_to(service, address):
    return message_from_bytes(wait_for(lambda: service.received(address), seconds=60, what="the message"))


def test_an_email_is_sent_with_text_html_and_attachment(cli, service, address, tmp_path):
    (tmp_path / "invoice.pdf").write_bytes(b"%PDF-1.7 invoice")
    (tmp_path / "body.html").write_text("<p>Thank you, <b>Ada</b></p>")
    options = ("--text", "Thank you", "--html-file", "body.html", "--attach", "invoice.pdf", "--tag", "order")
    accepted = cli.run(*sender(address), *options, "--metadata", '{"order": 7}').json
    assert accepted["status"] == "queued"
    parts = {part.get_content_type(): part.get_payload(decode=True) for part in message_to(service, address).walk()}
    assert parts["application/pdf"] == b"%PDF-1.7 invoice"
    assert b"Thank you, <b>Ada</b>" in parts["text/html"]
    shown = cli.run("emails", "show", accepted["id"]).json
    assert (shown["tags"], shown["metadata"], shown["attachments"][0]["filename"]) == (
        ["order"],
        {"order": 7},
        "invoice.pdf",
    )
    assert shown["events"][0]["eventType"] == "queued"


def test_an_invitation_is_sent_to_an_envelope(cli, service, address, tmp_path):
    (tmp_path / "meeting.ics").write_bytes(b"BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n")
    shown = someone()
    options = ("--text", "Meet", "--cc", shown, "--envelope", address, "--alternative", "meeting.ics")
    accepted = cli.run(*sender(address), *options).json
    message = message_to(service, address)
    assert message["Cc"] == shown
    assert [part["Content-Type"].split("\n")[0] for part in message.walk()][-1].startswith("text/calendar")
    assert message.get_content_subtype() == "alternative"
    assert [part.get_param("method") for part in message.walk()][-1] == "REQUEST"
    recipients = cli.run("emails", "show", accepted["id"]).json["recipients"]
    assert [one["email"] for one in recipients] == [address]
    refused = cli.run(*sender(address), "--text", "Meet", "--envelope", shown)
    assert (refused.code, shown in refused.errors) == (5, True)


def test_an_email_may_have_hidden_recipients_only(cli, service, address):
    accepted = cli.run("send", "--from", "hello@demo.example", "--bcc", address, "--subject", "Hi", "--text", "Hi")
    assert accepted.json["status"] == "queued"
    assert address not in message_to(service, address).as_string()
    missing = cli.run("send", "--from", "hello@demo.example", "--subject", "Hi", "--text", "Hi")
    assert (missing.code, "--to" in missing.errors) == (2, True)


def test_text_is_read_from_standard_input(cli, service, address):
    assert cli.run(*sender(address), stdin="Hello from a pipe\n").code == 0
    assert "Hello from a pipe" in message_to(service, address).as_string()


def test_a_template_is_rendered_with_data_of_an_option_or_a_file(cli, client, address, tmp_path):
    alias = f"t{uuid4().hex}"
    client.templates.create(name="Greeting", subject="Hi {{name}}", html_content="<p>{{name}}</p>", alias=alias)
    (tmp_path / "data.json").write_text('{"name": "Grace"}')
    base = ("send", "--from", "hello@demo.example", "--to", address, "--template", alias, "--dry-run")
    assert cli.run(*base, "--data", '{"name": "Ada"}').json["subject"] == "Hi Ada"
    assert cli.run(*base, "--data-file", "data.json").json["subject"] == "Hi Grace"
    client.templates.update(alias, locales={"de": {"subject": "Hallo {{name}}"}})
    assert cli.run(*base, "--data", '{"name": "Ada"}', "--locale", "de-AT").json["subject"] == "Hallo Ada"
    assert cli.run("emails", "list", "--search", address).json == []


def test_a_key_sends_once_and_a_schedule_later(cli, address):
    at = (datetime.now(UTC) + timedelta(days=2)).replace(microsecond=0)
    options = ("--text", "Hi", "--schedule", at.isoformat(), "--idempotency-key", f"order-{uuid4()}")
    first, second = (cli.run(*sender(address), *options).json for _ in range(2))
    assert (first["id"], first["status"]) == (second["id"], "scheduled")
    shown = cli.run("emails", "show", first["id"]).json
    assert datetime.fromisoformat(shown["scheduledFor"]) == at


def test_an_email_has_a_time_limit(cli, address):
    expires_at = (datetime.now(UTC) + timedelta(minutes=10)).isoformat()
    for option in (("--deliver-within", "10m"), ("--expires-at", expires_at)):
        accepted = cli.run(*sender(address), "--text", "Code", *option).json
        shown = cli.run("emails", "show", accepted["id"]).json
        left = datetime.fromisoformat(shown["expiresAt"]) - datetime.fromisoformat(shown["createdAt"])
        assert timedelta(minutes=8) < left <= timedelta(minutes=10)


REFUSED = [
    (("--data", "[1]", "--template", "x"), 2, "not a JSON object"),
    (("--data", "{", "--template", "x"), 2, "not valid JSON"),
    (("--schedule", "tomorrow", "--text", "Hi"), 2, "is not a time such as"),
    (("--deliver-within", "soon", "--text", "Hi"), 2, "is not a time such as 600 or 10m"),
    (("--attach", "missing.pdf", "--text", "Hi"), 2, "does not exist"),
    (("--template", "no-such-template"), 5, ""),
    (("--text", "Hi", "--to", "no address"), 5, "to"),
    (("--text", "Hi", "--api-key", "pr_wrong"), 3, "postrider login"),
    (("--text", "Hi", "--profile", "other", "--url", ""), 1, "postrider login --profile other"),
]


def test_a_refused_email_is_one_line_with_the_reason(cli, address):
    for options, code, message in REFUSED:
        result = cli.run(*sender(address), *options)
        assert (result.code, result.output, result.errors.count("\n")) == (code, "", 1), (options, result.errors)
        assert message in result.errors
        assert cli.environment["POSTRIDER_API_KEY"] not in result.errors


def test_emails_are_listed_by_search_status_and_date(cli, address):
    sent = [cli.run(*sender(address, f"Order {number}"), "--text", "Hi").json["id"] for number in range(3)]
    listed = cli.run("emails", "list", "--search", address).json
    assert [email["id"] for email in listed] == sent[::-1]
    assert len(cli.run("emails", "list", "--search", address, "--limit", "2").json) == 2
    assert cli.run("emails", "list", "--search", address, "--status", "bounced").json == []
    assert cli.run("emails", "list", "--search", address, "--until", "2020-01-01").json == []


def test_a_terminal_shows_tables_in_colour(cli, address, service):
    email = cli.run(*sender(address), "--text", "Hi").json
    wait_for(lambda: service.received(address), seconds=60, what="the message")
    is_delivered = lambda: cli.run("emails", "show", email["id"]).json["status"] == "delivered"  # noqa: E731
    wait_for(is_delivered, seconds=60, what="the status")
    with cli.terminal("emails", "list", "--search", address) as terminal:
        screen = terminal.finish()
        assert terminal.colour_of("delivered") == "green"
    assert re.search(rf"{email['id']}.*delivered.*{address}", screen)
    shown = cli.screen("emails", "show", email["id"]).text
    for text in ("Shop <hello@demo.example>", "Recipient", "queued", "delivered"):
        assert text in shown
    assert f'"id": "{email["id"]}"' in cli.screen("--json", "emails", "list", "--search", address, "--limit", "1").text


def test_a_terminal_shows_no_escape_sequences_of_a_response(cli, service):
    email = {**service.stack.call("GET", "/emails?limit=1").body["data"][0], "subject": "\x1b[2J\u202eHi [red]"}
    body = json.dumps({"data": [email], "total": 1, "page": 1, "limit": 20}).encode()
    with proxy(service.stack.url, Answer(200, {}, body)) as server:
        screen = cli.screen("emails", "list", "--url", server.url)
    assert "\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}Hi [red]" in screen.text


def test_a_terminal_shows_how_many_emails_there_are(cli, service):
    email = service.stack.call("GET", "/emails?limit=1").body["data"][0]
    page = {"data": [email], "total": 31, "page": 1, "limit": 20}
    bounded = {**page, "total": 10_001, "totalIsExact": False}
    for body, text in ((page, "1 of 31 emails."), (bounded, "1 of more than 10,000 emails.")):
        with proxy(service.stack.url, Answer(200, {}, json.dumps(body).encode())) as server:
            assert text in cli.screen("emails", "list", "--limit", "1", "--url", server.url).text


def test_json_and_errors_have_no_escape_sequences_of_a_response(cli, service):
    email = {**service.stack.call("GET", "/emails?limit=1").body["data"][0], "subject": "\x9b2J\u202e\x7f"}
    listing = Answer(200, {}, json.dumps({"data": [email], "total": 1, "page": 1, "limit": 20}).encode())
    refusal = Answer(404, {}, json.dumps({"detail": "\x1b[2J\x9b"}).encode())
    with proxy(service.stack.url, listing, refusal) as server:
        listed = cli.run("emails", "list", "--url", server.url)
        refused = cli.run("emails", "list", "--url", server.url)
    assert "\\u009b2J\\u202e\\u007f" in listed.output
    assert listed.json[0]["subject"] == email["subject"]
    assert (refused.code, "\x1b" in refused.errors, "\x9b" in refused.errors) == (4, False, False)


def test_a_terminal_shows_the_lines_of_a_rendered_email(cli, address):
    screen = cli.screen(*sender(address), "--text", "First\n\tSecond\x1b[2J", "--dry-run").text
    assert "\N{REPLACEMENT CHARACTER}" not in screen.replace("\N{REPLACEMENT CHARACTER}[2J", "")
    assert [line.strip().removeprefix("Text").strip() for line in screen.splitlines() if "First" in line] == ["First"]
    assert "HTML" not in screen


def test_input_that_is_not_utf_8_is_one_line(cli, address, tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    for command in ([*sender(address), "--text-file", "latin.txt"], ["suppressions", "import", "latin.txt"]):
        result = cli.run(*command)
        assert (result.code, result.errors.count("\n"), "must be UTF-8" in result.errors) == (1, 1, True)


def test_a_terminal_shows_the_result_of_sending(cli, address):
    assert "is queued. Follow it with `postrider emails show" in cli.screen(*sender(address), "--text", "Hi").text
    refused = cli.screen(*sender(address))
    assert "Pass --text, --html or --template" in refused.text
    assert (refused.code, refused.colour_of("error:")) == (2, "red")


def test_output_to_a_closed_pipe_is_no_traceback(cli):
    reader, writer = os.pipe()
    os.close(reader)
    command = [*PROGRAM, "emails", "list"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=cli.environment, check=False, timeout=120)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_json_of_the_program_is_the_response_of_the_api(cli, service):
    listed = json.loads(cli.run("emails", "list", "--limit", "1").output)
    assert listed == service.stack.call("GET", "/emails?limit=1").body["data"]
