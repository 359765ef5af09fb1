"""Delivery guarantees (docs/specification.md, Delivery) with slow and silent mail hosts, and late replies."""

import asyncio
import base64
import email
import json
import os
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.lib.ids import to_uuid
from core.lib.worker.stages import Stage
from tests.core.delivery.scripted import ScriptedServer, after, silence
from tests.core.lib.nameserver import NameServer
from tests.event_loops import running_loop
from tests.stack.entries import expire_leases
from tests.stack.stack import free_port, wait_for

pytestmark = pytest.mark.stack

GOOD = b"250 2.0.0 Queued as 1\r\n"
GO_AHEAD = b"354 Go ahead\r\n"


@contextmanager
def mail_hosts(*servers: ScriptedServer) -> Iterator[None]:
    """Run scripted mail hosts in a thread; their received messages can be read at any time."""
    with running_loop() as loop:

        def run(coroutine: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(coroutine, loop).result(timeout=20)

        stack = AsyncExitStack()
        try:
            for server in servers:
                run(stack.enter_async_context(server))
            yield
        finally:
            run(stack.aclose())


def relay_settings(server):
    return {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{server.port}?tls=none"}


def direct_settings(names, port):
    """Return the settings of direct delivery to hosts of a name server."""
    return {
        "DELIVERY_TRANSPORT": "direct",
        "DIRECT_SMTP_PORT": str(port),
        "DELIVERY_ALLOW_PRIVATE_NETWORKS": "true",
        "DNS_SERVERS": f"{names.address[0]}:{names.address[1]}",
    }


def message_ids(server):
    return [email.message_from_bytes(message)["Message-ID"] for message in server.messages]


def state_of(stack):
    return stack.query("SELECT state FROM emails_recipient")[0][0]


def test_a_worker_killed_before_the_final_dot_leaves_exactly_one_message(web_stack):
    server = ScriptedServer({"data": [silence, GO_AHEAD]})
    with mail_hosts(server):
        web_stack.start("worker-1", **relay_settings(server))
        web_stack.send()
        wait_for(lambda: server.said("DATA"), seconds=60, what="the host receives DATA")
        web_stack.kill("worker-1")
        expire_leases(web_stack)
        web_stack.start("worker-2", **relay_settings(server))
        wait_for(lambda: state_of(web_stack) == "sent", seconds=60, what="the second worker sends it")
        assert len(server.messages) == 1


def test_a_worker_killed_after_the_final_dot_leaves_one_duplicate_and_an_event(web_stack):
    server = ScriptedServer({"dot": [silence, GOOD]})
    with mail_hosts(server):
        web_stack.start("worker-1", **relay_settings(server))
        sent = web_stack.send()
        wait_for(lambda: server.messages, seconds=60, what="the host has the message")
        web_stack.kill("worker-1")
        expire_leases(web_stack)
        web_stack.start("worker-2", **relay_settings(server))
        wait_for(lambda: state_of(web_stack) == "sent", seconds=60, what="the second worker sends it")
        first, second = message_ids(server)
        assert first == second
        events = web_stack.call("GET", f"/emails/{sent.body['id']}/events").body["data"]
        reasons = [event["payload"].get("reason") for event in events if event["eventType"] == "deferred"]
        assert reasons == ["worker_lost"]


def test_a_final_reply_after_three_leases_is_waited_for(web_stack):
    """With a lease of four seconds, the lease is renewed until the reply, and no other worker sends the message."""
    server = ScriptedServer({"dot": after(13, GOOD)})
    with mail_hosts(server):
        web_stack.start("worker-1", "worker-2", LEASE_SECONDS="4", **relay_settings(server))
        web_stack.send()
        wait_for(lambda: state_of(web_stack) == "sent", seconds=60, what="the late reply is recorded")
        assert len(server.messages) == 1
        assert web_stack.query("SELECT count(*) FROM emails_event WHERE kind = 'deferred'") == [(0,)]


def test_a_silent_destination_does_not_slow_another(web_stack):
    port = free_port()
    dead = ScriptedServer({"banner": silence}, host="127.0.0.2", port=port)
    good = ScriptedServer(host="127.0.0.3", port=port)
    zones = {
        "dead.example": {"MX": ["10 mx.dead.example."]},
        "mx.dead.example": {"A": ["127.0.0.2"]},
        "good.example": {"MX": ["10 mx.good.example."]},
        "mx.good.example": {"A": ["127.0.0.3"]},
    }
    with NameServer(zones) as names, mail_hosts(dead, good):
        web_stack.start("worker-direct", "beat", DELIVERY_CONNECTIONS="16", **direct_settings(names, port))
        log = web_stack.logs / "worker-direct.log"
        wait_for(lambda: "worker is ready" in log.read_text(), seconds=60, what="the worker gets wake-ups")
        for number in range(60):
            web_stack.send(to=f"u{number}@dead.example")
        wait_for(lambda: dead.open, seconds=60, what="a connection to the silent host")
        for number in range(20):
            web_stack.send(to=f"u{number}@good.example")
        wait_for(lambda: len(good.messages) == 20, seconds=60, what="the other host receives its messages")
        waiting = web_stack.query("SELECT count(*), max(attempts) FROM emails_pending WHERE domain = 'dead.example'")
        assert waiting == [(60, 1)]


def test_large_attachments_at_full_concurrency_stay_within_bounds(web_stack):
    """16 emails of 10 MiB would need half a gigabyte when composed; a worker sends three at a time."""
    web_stack.start("worker")
    web_stack.send()
    wait_for(web_stack.all_delivered, seconds=60, what="a warm worker")
    before = peak_bytes(web_stack.processes["worker"].pid)
    content = base64.b64encode(os.urandom(10_485_760)).decode()
    file = {"filename": "big.bin", "content": content, "contentType": "application/octet-stream"}
    first = web_stack.send(to=[f"u{number}@example.com" for number in range(16)], attachments=[file])
    assert first.status == 202
    wait_for(lambda: len(web_stack.caught()) == 17, seconds=180, what="all messages")
    assert peak_bytes(web_stack.processes["worker"].pid) - before < 300 * 2**20


def peak_bytes(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


BACKLOG = """
WITH source AS (SELECT workspace_id, content_id, sender, from_domain FROM emails_email LIMIT 1),
made AS (
    INSERT INTO emails_email (id, workspace_id, content_id, sender, from_domain, "to", cc, bcc, subject, search_text,
                              tags, headers, track_opens, track_clicks, created_at, status, retry_count)
    SELECT gen_random_uuid(), workspace_id, content_id, sender, from_domain, ARRAY['u' || n || '@example.com'], '{}',
           '{}', 's', 's', '{}', '{}', true, true, now(), 'queued', 0
      FROM source, generate_series(1, %s) n
    RETURNING id, workspace_id, "to"[1] AS address
), recipient AS (
    INSERT INTO emails_recipient (id, email_id, kind, position, address, state, attempts)
    SELECT gen_random_uuid(), id, 'to', 0, address, 'queued', 0 FROM made
    RETURNING id, email_id
)
INSERT INTO emails_pending (recipient_id, workspace_id, domain, stage, due_at, since, fence, attempts)
SELECT recipient.id, made.workspace_id, 'example.com', %s, now(), now(), 0, 0
  FROM recipient JOIN made ON made.id = recipient.email_id
RETURNING 1
"""


def other_workspace(stack):
    """Return the stack with the API key of another workspace, which can send from other.example."""
    account = ["--name", "Other", "--email", "o@other.example", "--password", "long enough", "--plan", "pro"]
    workspace = json.loads(stack.manage("create_workspace", *account))["workspaceId"]
    made = stack.manage("create_api_key", "--workspace", workspace, "--name", "k", "--scope", "full_access")
    other = replace(stack, key=json.loads(made)["key"])
    assert other.call("POST", "/domains", {"name": "other.example"}).status == 201
    return other


SENT_MEANWHILE = """
SELECT count(*) FROM emails_recipient, emails_email
 WHERE emails_email.id = %s AND emails_recipient.sent_at BETWEEN emails_email.created_at AND emails_email.sent_at
"""


def sent_before(stack):
    """Send an email from other.example; return the number of recipients whose email was sent between its acceptance
    and its delivery."""
    sent = stack.send(**{"from": "x@other.example"})
    assert sent.status == 202
    path = f"/emails/{sent.body['id']}"
    wait_for(
        lambda: stack.call("GET", path).body["status"] in ("sent", "delivered"),
        seconds=100,
        what="the email is delivered",
    )
    return stack.query(SENT_MEANWHILE, to_uuid(sent.body["id"]))[0][0]


@pytest.mark.parametrize("backlog", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_a_backlog_of_one_workspace_does_not_delay_another(stack, backlog):
    stack.start("inbox", "web")
    stack.send()
    stack.query(BACKLOG, backlog, Stage.READY)
    other = other_workspace(stack)
    stack.start("worker")
    wait_for(lambda: len(stack.caught()) > 50, seconds=60, what="the backlog is being sent")
    assert max(sent_before(other) for _ in range(3)) < 1000
    assert stack.query("SELECT count(*) FROM emails_pending")[0][0] > 0, "the backlog is not empty"


class Sink(ScriptedServer):
    """A mail host that reads messages in large blocks and keeps nothing."""

    async def _body(self, reader):
        end = b""
        while block := await reader.read(2**20):
            end = (end + block)[-5:]
            if end == b"\r\n.\r\n":
                break
        return b""


def test_the_most_expensive_emails_do_not_delay_another_workspace(stack):
    """49,000 links to 50 recipients are close to 1 MiB of HTML, the limit."""
    sink = Sink()
    with mail_hosts(sink):
        stack.start("web")
        other = other_workspace(stack)
        links = '<a href="http://a.b">' * 49_000
        for _ in range(10):
            worst = stack.send(to=[f"u{number}@example.com" for number in range(50)], html=links)
            assert worst.status == 202
            assert [warning["code"] for warning in worst.body["warnings"]] == ["links_untracked"]
        stack.start("worker", **relay_settings(sink))
        wait_for(lambda: len(sink.messages) > 2, seconds=60, what="the expensive emails are being sent")
        for _ in range(3):
            sent_before(other)
        assert len(sink.messages) < 250, "the three emails do not wait for half of the 500 expensive messages"


def test_an_address_suppressed_during_a_delivery_gets_nothing(web_stack):
    server = ScriptedServer({"data": after(1, GO_AHEAD)})
    with mail_hosts(server):
        web_stack.start("worker", **relay_settings(server))
        web_stack.send(to="grace@example.com")
        wait_for(lambda: server.said("DATA"), seconds=60, what="the host receives DATA")
        assert web_stack.call("POST", "/suppressions", {"email": "grace@example.com"}).status == 201
        wait_for(lambda: state_of(web_stack) == "failed", seconds=60, what="the recipient fails")
        assert server.messages == []
