"""`postrider inbound`, and the parts of other commands about received email."""

from uuid import uuid4

import pytest

from tests.clients.messages import count_receiving_webhooks, received_message
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


@pytest.fixture
def address(cli):
    local, _, domain = cli.run("inbound", "settings").json["address"].partition("@")
    return f"{local}+{uuid4().hex[:12]}@{domain}"


@pytest.fixture
def route(cli, address):
    """A route for the address, which is deleted at the end."""
    label = address.partition("+")[2].partition("@")[0]
    created = cli.run("inbound", "routes", "create", f"*+{label}@shared", "--name", "Test", "--store-days", "3").json
    yield created
    cli.run("inbound", "routes", "delete", created["id"])


def simulate(cli, service, address, *options, **run_options):
    arguments = ("inbound", "simulate", "--to", address, *options, "--api-key", service.test_key)
    received_id = cli.run(*arguments, **run_options).json["id"]
    wait_for(lambda: cli.run("inbound", "show", received_id).json["status"] != "stored", seconds=30, what="the reading")
    return received_id


def test_a_simulated_email_is_listed_shown_saved_and_deleted(cli, client, service, address, route):
    subject = f"Order {uuid4().hex}"
    message = received_message(subject=subject, to=address)
    received_id = simulate(cli, service, address, "--file", "-", stdin=message)
    (listed,) = cli.run("inbound", "list", "--subject", subject, "--from", "ada@", "--route", route["id"]).json
    assert (listed["id"], listed["recipient"], "text" in listed) == (received_id, address, False)
    assert cli.run("inbound", "list", "--subject", subject, "--status", "blocked").json == []
    shown = cli.run("inbound", "show", received_id).json
    assert (shown["text"].strip(), shown["envelopeFrom"]) == ("Where is my order?", "ada@example.com")
    raw = cli.run("inbound", "raw", received_id)
    assert raw.output.endswith(message)
    assert raw.output.startswith("Received: ")
    (file,) = shown["attachments"]
    saved = cli.run("inbound", "attachment", received_id, file["id"], "-o", "a.txt").json
    assert (saved, (cli.home / "a.txt").read_bytes()) == ({"file": "a.txt", "size": 5}, b"hello")
    assert cli.run("inbound", "redeliver", received_id).json["deliveries"] == count_receiving_webhooks(client)
    assert cli.run("inbound", "bypass", received_id).code == 5
    assert cli.run("inbound", "reread", received_id).code == 5
    assert cli.run("inbound", "delete", received_id).json["deleted"] is True
    assert cli.run("inbound", "show", received_id).code == 4


def test_a_terminal_says_what_is_proven_and_shows_no_control_characters(cli, service, address, route):
    raw = f"From: \x1b[31mBank <bank@example.com>\r\nSubject: Pay \x1b[2Jnow {uuid4().hex}\r\n\r\nHi \x1b[8mhidden\r\n"
    received_id = simulate(cli, service, address, "--file", "-", stdin=raw)
    screen = cli.screen("inbound", "show", received_id).text
    assert "not proven" in screen
    assert "Hi \N{REPLACEMENT CHARACTER}[8mhidden" in screen
    assert "\N{REPLACEMENT CHARACTER}[8mhidden" in cli.screen("inbound", "raw", received_id).text


def test_routes_are_created_matched_changed_listed_and_deleted(cli, address, route):
    assert (route["domain"], route["storeDays"], route["action"]) == ("shared", 3, "deliver")
    found = cli.run("inbound", "routes", "match", address).json
    assert (found["route"]["id"], found["reply"]) == (route["id"], "250 2.1.5 OK")
    changed = cli.run("inbound", "routes", "update", route["id"], "--action", "reject", "--priority", "0").json
    assert (changed["action"], changed["priority"], changed["storeDays"]) == ("reject", 0, 3)
    assert cli.run("inbound", "routes", "match", address).json["reply"].startswith("550")
    assert route["id"] in [one["id"] for one in cli.run("inbound", "routes", "list", "--domain", "shared").json]
    shown = [line.split() for line in cli.screen("inbound", "routes", "show", route["id"]).text.splitlines()]
    assert [["Address", f"{route['match']}@shared"], ["Webhooks", "all"], ["Forward", "to", "none"]] == [
        line for line in shown if line and line[0] in ("Address", "Webhooks", "Forward")
    ]
    assert cli.run("inbound", "routes", "delete", route["id"]).json["deleted"] is True


def test_senders_are_blocked_and_removed_by_name(cli):
    sender = f"{uuid4().hex}.example"
    block = cli.run("inbound", "blocks", "add", sender.upper()).json
    assert block["sender"] == sender
    assert block["id"] in [one["id"] for one in cli.run("inbound", "blocks", "list").json]
    assert cli.run("inbound", "blocks", "remove", sender.title()).json["deleted"] is True
    assert cli.run("inbound", "blocks", "remove", sender).code == 4


def test_a_received_email_is_answered_with_send(cli, service, address, route):
    received_id = simulate(cli, service, address, "--subject", "Order 7", "--text", "Where is it?")
    send = ("send", "--from", "hello@demo.example", "--in-reply-to", received_id, "--text", "On its way.")
    sent = cli.run(*send, "--reply-tracking", "--api-key", service.test_key).json
    shown = cli.run("emails", "show", sent["id"]).json
    assert (shown["to"], shown["subject"]) == ("ada@example.com", "Re: Order 7")
    assert "In-Reply-To" in shown["headers"]


ERRORS = [
    (("inbound", "simulate", "--to", "support@in.demo.example"), 3, "test key"),
    (("inbound", "routes", "create", "support", "--name", "X"), 2, "is not a pattern"),
    (("inbound", "routes", "create", "a@unknown.example", "--name", "X"), 5, "unknown.example"),
    (("inbound", "routes", "create", "*a*b*c*@shared", "--name", "X"), 5, "at most 3 stars"),
    (("inbound", "routes", "update", "rt_0Uf7kXT4vB6nM8qWeRtYuI"), 2, "at least one property"),
    (("inbound", "show", "inb_0Uf7kXT4vB6nM8qWeRtYuI"), 4, ""),
    (("send", "--from", "hello@demo.example", "--text", "Hi"), 2, "Pass --to"),
    (("webhooks", "listen", "--forward-to", "http://localhost:1/", "--simulate", "a@b.example"), 2, "test key"),
]


def test_errors_are_explained(cli):
    for arguments, code, message in ERRORS:
        result = cli.run(*arguments)
        assert (result.code, message in result.errors) == (code, True), (arguments, result.errors)
