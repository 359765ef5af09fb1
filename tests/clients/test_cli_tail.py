"""`postrider tail`."""

from functools import partial

import pytest

from tests.clients.faulty import relay
from tests.clients.messages import latest_cursor, send_email
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


def kinds_of(process, email_id):
    return [event["event"] for event in process.lines if event["data"].get("emailId") == email_id]


def test_events_are_printed_when_they_occur_as_lines_of_json(cli, client):
    with cli.started("tail", "--after", latest_cursor(client), "--type", "queued", "--type", "delivered") as process:
        email_id = send_email(client)
        is_complete = lambda: kinds_of(process, email_id) == ["queued", "delivered"]  # noqa: E731
        wait_for(is_complete, seconds=60, what="the events")
        process.interrupt()


def test_no_event_is_missed_or_repeated_over_lost_connections(cli, client, service):
    sent = []
    with (
        relay(service.stack.url) as server,
        cli.started("tail", "--after", latest_cursor(client), POSTRIDER_URL=server.url) as process,
    ):
        for number in range(3):
            wait_for(lambda number=number: server.accepted > number, seconds=60, what="a connection")
            # Two are sent while the program is connected or connects again.
            server.cut()
            sent += [send_email(client), send_email(client)]
            wait_for(partial(kinds_of, process, sent[-1]), seconds=60, what="the last event")
        process.interrupt()
    queued = [event["data"]["emailId"] for event in process.lines if event["event"] == "queued"]
    seen = [email_id for email_id in queued if email_id in sent]
    assert seen == sent
    assert "The connection is lost" in process.errors


def test_an_invalid_cursor_or_key_ends_the_program(cli):
    assert cli.run("tail", "--after", "nonsense").code == 5
    assert cli.run("tail", "--api-key", "pr_wrong").code == 3


def test_a_terminal_shows_one_line_for_each_event(cli, client):
    with cli.terminal("tail", "--after", latest_cursor(client)) as terminal:
        email = client.emails.get(send_email(client))
        terminal.wait_for(f"delivered  {email.to}")
        assert terminal.text.count(email.to) >= 2
        assert terminal.colour_of("delivered") == "green"
        terminal.type("\x03")
        terminal.finish()
        assert terminal.code == 130
