"""Benchmark of received email: messages of 20 kB stored, verified and posted, compared with Haraka.

    .venv/bin/python -m tools.benchmarks.inbound [--rounds 3] [--messages 1000]

Postrider stores each message in PostgreSQL before the 250, verifies SPF, DKIM, DMARC and ARC, and posts a webhook.
Haraka, with two processes and its plugins spf, dkim and queue/test, verifies SPF and DKIM before the 250 and writes the
message into a file. Both run all the time, receive the same messages in ten sessions in turn, and look up the same zone
of a name server on loopback. PostgreSQL flushes to disk; Haraka leaves that to the operating system. Haraka is
installed from npm.
"""

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.core.lib.nameserver import NameServer
from tests.stack.stack import Stack, free_port, running_stack, wait_for
from tools.benchmarks.figures import record_figure, record_rounds
from tools.benchmarks.footprint import read_usage, total
from tools.benchmarks.inbound.messages import SignedMessages
from tools.benchmarks.inbound.senders import deliver
from tools.benchmarks.peers import mail_servers
from tools.benchmarks.peers.messages import MessageFiles
from tools.benchmarks.processes import assert_flushes, other_process
from tools.benchmarks.sizes import size
from tools.benchmarks.webhooks import receive

LIMIT_SECONDS = 600
HARAKA_ADDRESS = "support@haraka.example"
HARAKA_PLUGIN = Path(__file__).with_name("haraka_receiver.js")
POSTED = "SELECT count(*) FROM webhooks_webhookdelivery WHERE status = 'succeeded'"
PROVEN = "SELECT count(*) FROM receiving_message WHERE authentication->>'result' = 'pass'"


@dataclass(frozen=True)
class InboundRound:
    """The figures of a round.

    rate: messages per second from the first connection until all are posted or written.
    accepted: messages per second until the 250.
    """

    rate: float
    accepted: float
    p99_ms: float
    cpu_us: float


@dataclass(frozen=True)
class InboundPostrider:
    """A Postrider with one inbound server and one worker per core, whose shared address posts to an endpoint.

    The workers are those of `manage.py worker`, which share memory.
    """

    stack: Stack
    address: str
    pids: list[int]

    @property
    def port(self) -> int:
        return int(self.stack.environment["INBOUND_PORT"])

    def measure(self, messages: SignedMessages, count: int) -> InboundRound:
        proven, posted = self._count(PROVEN), self._count(POSTED)
        result = measure(
            messages,
            count,
            pids=self.pids,
            port=self.port,
            to=self.address,
            is_done=lambda: self._count(POSTED) == posted + count,
        )
        assert self._count(PROVEN) == proven + count
        return result

    def _count(self, sql: str) -> int:
        return int(self.stack.query(sql)[0][0])


@dataclass(frozen=True)
class InboundHaraka:
    """A running Haraka that writes each message into a file."""

    directory: Path
    port: int
    pid: int

    def measure(self, messages: SignedMessages, count: int) -> InboundRound:
        result = measure(
            messages,
            count,
            pids=[self.pid],
            port=self.port,
            to=HARAKA_ADDRESS,
            is_done=lambda: len(self._files()) == count,
        )
        for path in self._files():
            assert {"spf=pass", "dkim=pass"} <= set(re.findall(r"\b(?:spf|dkim)=\w+", path.read_text())), path
            path.unlink()
        return result

    def _files(self) -> list[Path]:
        return [*self.directory.glob("mail_*.eml")]


def measure(
    messages: SignedMessages, count: int, *, pids: list[int], port: int, to: str, is_done: Callable[[], bool]
) -> InboundRound:
    sources = messages.take(count, to=to)
    used, started = total(read_usage(pids)), time.perf_counter()
    delays = sorted(deliver(port, sources, to=to))
    accepted = count / (time.perf_counter() - started)
    wait_for(is_done, seconds=LIMIT_SECONDS, what="all messages are posted or written")
    rate = count / (time.perf_counter() - started)
    cpu = (total(read_usage(pids)) - used) / count
    return InboundRound(rate, accepted, delays[len(delays) * 99 // 100] * 1e3, cpu * 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks.inbound")
    parser.add_argument("--rounds", type=int, default=size(3, smoke=1))
    parser.add_argument("--messages", type=int, default=size(1000, smoke=20), help="messages of each measurement")
    options = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory(prefix="postrider-inbound-") as name:
        directory = Path(name)
        messages = SignedMessages(MessageFiles(directory / "files"))
        (directory / "files").mkdir()
        with running_programs(directory, messages.zone) as (postrider, haraka):
            # The first messages only warm up.
            rounds = [
                (postrider.measure(messages, count), haraka.measure(messages, count))
                for count in [options.messages // 4, *[options.messages] * options.rounds]
            ][1:]
            report(rounds)
            record_figure("memory (PSS) of Postrider's inbound server and workers", memory_mb(postrider.pids), "MB")
            record_figure("memory (PSS) of Haraka, two processes", memory_mb([haraka.pid]), "MB")


@contextmanager
def running_programs(
    directory: Path, zone: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[InboundPostrider, InboundHaraka]]:
    """Start both programs with a name server for the zone. Raises AssertionError unless PostgreSQL flushes to disk."""
    with ExitStack() as cleanup:
        names = cleanup.enter_context(NameServer(zone))
        assert_flushes()
        postrider = cleanup.enter_context(running_postrider(directory, names))
        yield postrider, cleanup.enter_context(running_haraka(directory, names))


@contextmanager
def running_postrider(directory: Path, names: NameServer) -> Iterator[InboundPostrider]:
    """Start one inbound server and one worker per core, with an endpoint for the email of the shared address."""
    limits = {"RECEIVING_DAILY_LIMIT": "1000000", "RECEIVING_STORAGE": str(2**40)}
    servers = f"{names.address[0]}:{names.address[1]}"
    settings = {"RECEIVING_DOMAIN": "in.demo.example", "DNS_SERVERS": servers, **limits}
    with other_process(receive) as endpoint, running_stack(directory, **settings) as stack:
        stack.start("web", "inbound", "workers")
        hook = {"url": f"http://127.0.0.1:{endpoint}/hook", "events": ["received"]}
        assert stack.call("POST", "/webhooks", hook).status == HTTPStatus.CREATED
        route = {"name": "Everything", "domain": "shared", "match": "*"}
        assert stack.call("POST", "/inbound/routes", route).status == HTTPStatus.CREATED
        address = stack.call("GET", "/inbound").body["address"]
        pids = [stack.processes[name].pid for name in ("inbound", "workers")]
        yield InboundPostrider(stack, address, pids)


@contextmanager
def running_haraka(directory: Path, names: NameServer) -> Iterator[InboundHaraka]:
    """Start a Haraka that verifies SPF and DKIM and writes messages into files."""
    port, place, stored = free_port(), directory / "haraka", directory / "stored"
    stored.mkdir()
    texts = {
        "zone.json": json.dumps({"server": f"{names.address[0]}:{names.address[1]}"}),
        "databytes": "26214400",
        "dkim.ini": "[verify]\nenabled=true",
    }
    haraka = mail_servers.running_haraka(
        place, ["spf", "dkim", "queue/test"], HARAKA_PLUGIN, texts=texts, port=port, TMPDIR=str(stored)
    )
    with haraka as pid:
        yield InboundHaraka(stored, port, pid)


def report(rounds: list[tuple[InboundRound, InboundRound]]) -> None:
    ours, theirs = zip(*rounds, strict=True)
    record_rounds("messages of 20 kB received, verified and posted", [one.rate for one in ours], "/s")
    record_rounds("Haraka, two processes: received, verified and written", [one.rate for one in theirs], "/s")
    record_rounds("received, verified and posted : Haraka", [one.rate / other.rate for one, other in rounds])
    for name, results in (("Postrider", ours), ("Haraka", theirs)):
        record_rounds(f"{name}: messages accepted in ten sessions", [one.accepted for one in results], "/s")
        record_rounds(f"{name}: from MAIL to the reply after the data, p99", [one.p99_ms for one in results], "ms")
        record_rounds(f"{name}: processor time without the database", [one.cpu_us for one in results], "us")


def memory_mb(pids: list[int]) -> float:
    return sum(usage.pss_mb for usage in read_usage(pids).values())


if __name__ == "__main__":
    main()
