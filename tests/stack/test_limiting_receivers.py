"""The pace of receivers against mail servers that others wrote: Postfix with anvil, Haraka with its limit plugin.

Each takes so many messages a minute over so many connections, and passes them on to a host that records them.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from core.lib.worker.stages import Stage
from tests.audit.ledger import Ledger
from tests.audit.sink import mail_sink
from tests.core.lib.nameserver import NameServer
from tests.stack.stack import Stack, free_port, running_stack, wait_for
from tests.standards.postfix import Postfix
from tools.benchmarks.backlog import CONTENT, FILL
from tools.benchmarks.peers.mail_servers import RELAY_PLUGIN, running_haraka
from tools.embedded.servers import redis

pytestmark = [pytest.mark.stack]

DOMAIN = "slow.example"
ZONES = {DOMAIN: {"MX": [f"10 mx.{DOMAIN}."]}, f"mx.{DOMAIN}": {"A": ["127.0.0.1"]}}
# What the receiver takes: messages in so many seconds, over so many connections.
MESSAGES, EACH_SECONDS, CONNECTIONS = 20, 10, 3
PER_SECOND = MESSAGES / EACH_SECONDS
# With one message each, the limit of Haraka is one of messages.
EACH = 1
WAITING = 300
LEARNING_SECONDS, MEASURED_SECONDS = 20, 30
# Each refused attempt has an event. Those of connections have the code of their reply.
EVENTS = """
SELECT kind, count(*)::int FROM emails_event
 WHERE recipient_id IS NOT NULL AND created_at > now() - make_interval(secs => %s) GROUP BY 1
"""


@dataclass
class Receiver:
    """A mail server with limits, of which `lift` ends."""

    port: int
    lift: Callable[[], None]


@contextmanager
def limiting_postfix(_: Path, sink_port: int) -> Iterator[Receiver]:
    settings = {
        "anvil_rate_time_unit": f"{EACH_SECONDS}s",
        "smtpd_client_message_rate_limit": MESSAGES,
        "smtpd_client_connection_count_limit": CONNECTIONS,
        "smtpd_client_event_limit_exceptions": "",
    }
    with Postfix(routes={"*": sink_port}, settings=settings) as postfix:

        def lift() -> None:
            postfix.set("smtpd_client_message_rate_limit", 0)

        yield Receiver(postfix.port, lift)


@contextmanager
def limiting_haraka(directory: Path, sink_port: int) -> Iterator[Receiver]:
    """Run Haraka, which counts recipients by the address of the client, and checks their number at the greeting."""
    port, server = free_port(), redis.start_throw_away()
    password = server.url.partition("://:")[2].partition("@")[0]
    rate = f"{MESSAGES}/{EACH_SECONDS}s"
    configuration = f"""\
tarpit_delay=0
[redis]
host=127.0.0.1
port={server.port}
password={password}
[concurrency]
enabled=true
max={CONNECTIONS}
[rate_rcpt_host]
enabled=true
127={{rate}}
"""
    texts = {
        "plugins": f"limit\n{RELAY_PLUGIN.stem}",
        "limit.ini": configuration.format(rate=rate),
        "sink.json": f'{{"port": {sink_port}}}',
        "outbound.ini": "enable_tls=false\nlocal_mx_ok=true",
    }
    haraka = directory / "haraka"
    try:
        with running_haraka(haraka, [], RELAY_PLUGIN, texts=texts, port=port):

            def lift() -> None:
                # It reads the file again.
                (haraka / "config/limit.ini").write_text(configuration.format(rate="100000/1m"))

            yield Receiver(port, lift)
    finally:
        server.stop()


@pytest.mark.long
@pytest.mark.parametrize("program", [limiting_postfix, limiting_haraka])
def test_its_limits_are_found_and_nothing_is_lost_or_sent_twice(tmp_path, program):
    ledger = Ledger()
    table = tmp_path / "receivers.yaml"
    table.write_text(f"{DOMAIN}: {{messagesPerConnection: {EACH}}}")
    with (
        mail_sink(ledger) as sink_port,
        NameServer(ZONES) as dns,
        program(tmp_path, sink_port) as receiver,
        running_stack(
            tmp_path,
            DELIVERY_TRANSPORT="direct",
            DELIVERY_ALLOW_PRIVATE_NETWORKS="true",
            DIRECT_SMTP_PORT=str(receiver.port),
            DNS_SERVERS="{}:{}".format(*dns.address),
            DELIVERY_RETRY_SECONDS="1",
            RECEIVERS_FILE=str(table),
            WORKER_CONCURRENCY="2",
        ) as stack,
    ):
        addresses = fill(stack)
        stack.start("workers")
        wait_for(lambda: events(stack, 60)["delivered"], seconds=60, what="a delivery")
        time.sleep(LEARNING_SECONDS + MEASURED_SECONDS)
        found = events(stack, MEASURED_SECONDS)
        assert found["delivered"] >= 0.5 * PER_SECOND * MEASURED_SECONDS, found
        assert found["deferred"] <= 0.15 * found["delivered"], found
        receiver.lift()
        stack.manage("receivers", "release", DOMAIN)
        wait_for(lambda: not stack.query("SELECT 1 FROM emails_pending LIMIT 1"), seconds=240, what="all deliveries")
        wait_for(lambda: len(ledger.messages) >= WAITING, seconds=240, what="all messages at the last host")
    assert Counter(message.recipient for message in ledger.messages) == dict.fromkeys(addresses, 1)


def events(stack: Stack, seconds: float) -> Counter[str]:
    """Return the events of recipients in the last seconds, by kind."""
    return Counter(dict(stack.query(EVENTS, seconds)))


def fill(stack: Stack) -> list[str]:
    """Queue WAITING emails; return their recipients."""
    with psycopg.connect(stack.database, autocommit=True) as connection:
        (workspace,) = connection.execute("SELECT id FROM workspaces_workspace").fetchone()
        (content,) = connection.execute(CONTENT).fetchone()
        sql = FILL.replace("'@example.com'", f"'@{DOMAIN}'").replace("'example.com'", f"'{DOMAIN}'")
        values = {"workspace": workspace, "content": content, "stage": Stage.READY, "start": 1, "stop": WAITING}
        connection.execute(sql, values)
    return [f"user{number}@{DOMAIN}" for number in range(1, WAITING + 1)]
