"""`postrider streams`."""

from uuid import uuid4

import pytest

from tests.clients.messages import send_email, someone
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


@pytest.fixture
def stream():
    return f"s-{uuid4().hex[:8]}"


def test_ids_are_whole_on_a_narrow_terminal(cli, client):
    subject = f"A long subject that needs more than one line {uuid4()}"
    email_id = send_email(client, subject=subject)
    with cli.terminal("emails", "list", "--search", subject[-36:], columns=80) as terminal:
        screen = terminal.finish()
        assert email_id in screen
        assert "A long subject that needs more than one line" in " ".join(screen.split())
    stream = f"a-very-long-id-{uuid4().hex[:20]}"
    client.streams.create(id=stream, name="A name that needs more than one line of the terminal")
    with cli.terminal("streams", "list", columns=80) as terminal:
        assert stream in terminal.finish()


def test_a_stream_is_created_used_changed_and_archived(cli, stream):
    options = ("--name", "News", "--kind", "bulk", "--no-track-opens", "--priority", "normal")
    created = cli.run("streams", "create", stream, *options).json
    assert (created["kind"], created["trackOpens"], created["priority"], created["public"]) == (
        "bulk", False, "normal", True
    )  # fmt: skip
    assert cli.run("streams", "update", stream, "--private", "--name", "Monthly").json["public"] is False
    assert cli.run("streams", "show", stream).json["name"] == "Monthly"
    assert next(one["id"] for one in cli.run("streams", "list").json) == "main"
    send = ("send", "--from", "hello@demo.example", "--to", someone(), "--subject", "Hi", "--text", "Hi")
    sent = cli.run(*send, "--stream", stream).json
    assert cli.run("emails", "show", sent["id"]).json["stream"] == stream
    assert [one["id"] for one in cli.run("emails", "list", "--stream", stream).json] == [sent["id"]]
    assert cli.run("streams", "archive", stream).json["archivedAt"]
    # Each process of the service notices it within a second.
    is_refused = lambda: (sent := cli.run(*send, "--stream", stream)).code == 5 and sent.errors  # noqa: E731
    assert "is archived" in wait_for(is_refused, seconds=60, what="the refusal")
    assert cli.run("streams", "unarchive", stream).json["archivedAt"] is None


def test_a_table_shows_the_state_of_each_stream(cli, client, stream):
    client.streams.create(id=stream, name="News", kind="bulk")
    client.streams.archive(stream)
    (line,) = [line for line in cli.screen("streams", "list").text.splitlines() if stream in line]
    assert line.split() == [stream, "News", "bulk", "link", "low", "archived", "0"]
    shown = cli.screen("streams", "show", "main").text
    assert "transactional" in shown
    assert "Complained in 30 days" in shown
    assert ["State", "active"] in [line.split() for line in shown.splitlines()]


ERRORS = [
    (("create", "main", "--name", "Main"), 5, "There is a stream"),
    (("create", "news", "--name", "News", "--kind", "bulk", "--unsubscribe", "none"), 5, "needs unsubscribe"),
    (("create", "news", "--name", "News", "--kind", "spam"), 2, "spam"),
    (("update", "main"), 2, "at least one property"),
    (("archive", "main"), 5, "cannot be archived"),
    (("show", "unknown"), 4, ""),
]


def test_errors_are_explained(cli):
    for arguments, code, message in ERRORS:
        result = cli.run("streams", *arguments)
        assert (result.code, message in result.errors) == (code, True), (arguments, result.errors)
