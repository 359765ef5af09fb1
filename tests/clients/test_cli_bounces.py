"""`postrider bounces`."""

from uuid import uuid4

import pytest

from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


@pytest.fixture
def stream(client):
    """A stream with one bounce."""
    slug = f"s-{uuid4().hex[:8]}"
    client.streams.create(id=slug, name="News")
    to = "bounced@simulator.test"
    email = client.emails.send(from_="hello@demo.example", to=to, subject="Hi", text="Hi", stream=slug)
    wait_for(lambda: client.emails.get(email.id).status == "bounced", seconds=60, what="the bounce")
    return slug


def test_the_causes_of_a_stream_are_printed_as_json(cli, stream):
    causes = cli.run("bounces", "--stream", stream).json
    assert [(one["reason"], one["recipients"]) for one in causes["reasons"]] == [("unknown_user", 1)]
    assert cli.run("bounces", "--stream", stream, "--until", "2026-01-01").json["recipients"] == 0
    assert cli.run("bounces", "--event", "opened").code == 2


def test_a_terminal_shows_two_tables(cli, stream):
    with cli.terminal("bounces", "--stream", stream) as terminal:
        shown = terminal.finish()
    assert "unknown_user" in shown
    assert "100.0%" in shown
    assert "simulator.test" in shown
