"""`postrider latency`."""

from uuid import uuid4

import pytest

from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


def test_latencies_are_printed_as_json_and_as_a_table(cli, client):
    stream = f"s-{uuid4().hex[:8]}"
    client.streams.create(id=stream, name="Quick")
    email = client.emails.send(from_="hello@demo.example", to="ada@example.com", subject="Hi", text="Hi", stream=stream)
    wait_for(lambda: client.emails.get(email.id).delivered_at, seconds=60, what="the delivery")
    report = cli.run("latency", "--by", "stream").json
    assert next(one for one in report["groups"] if one["id"] == stream)["outcome"]["count"] == 1
    assert cli.run("latency", "--until", "2026-01-01").json["outcome"]["p95"] is None
    assert cli.run("latency", "--by", "tag").code == 2
    shown = cli.screen("latency", "--by", "stream").text
    assert all(text in shown for text in ("Within 10 s", "Quick", "100.0%")), shown
