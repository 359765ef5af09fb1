"""`postrider bounces`."""

from uuid import uuid4

import pytest

from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


def test_the_causes_of_a_stream_are_printed_as_json_and_as_two_tables(cli, client):
    stream, to = f"s-{uuid4().hex[:8]}", "bounced@simulator.example"
    client.streams.create(id=stream, name="News")
    email = client.emails.send(from_="hello@demo.example", to=to, subject="Hi", text="Hi", stream=stream)
    wait_for(lambda: client.emails.get(email.id).status == "bounced", seconds=60, what="the bounce")
    causes = cli.run("bounces", "--stream", stream).json
    assert [(one["reason"], one["recipients"]) for one in causes["reasons"]] == [("unknown_user", 1)]
    assert cli.run("bounces", "--stream", stream, "--until", "2026-01-01").json["recipients"] == 0
    assert cli.run("bounces", "--event", "opened").code == 2
    shown = cli.screen("bounces", "--stream", stream).text
    assert all(text in shown for text in ("unknown_user", "100.0%", "simulator.example")), shown
