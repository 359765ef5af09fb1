"""Benchmark of the pace: a receiver that accepts r messages a minute on c connections, beside nine without limits.

    .venv/bin/python -m tools.benchmarks.pace [--phases 60x600,600x600,60x600] [--waiting 10000] [--workers 4]

The receiver closes further connections with 421, and answers further messages with `421 4.7.28` after the dot. A token
bucket counts them. Meanwhile each second an email goes to each of the other receivers. A phase is a rate and seconds.
Requires DATABASE_URL of a server on which databases may be created.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import psycopg

from core.lib.worker.stages import Stage
from tests.core.lib.nameserver import NameServer
from tests.stack.stack import Stack, free_port, running_stack
from tools.benchmarks.backlog import CHUNK, CONTENT, FILL
from tools.benchmarks.figures import record_figure
from tools.benchmarks.processes import other_process
from tools.benchmarks.sizes import size

SLOW, OTHERS = "127.0.0.21", [f"127.0.0.{number}" for number in range(22, 31)]
CONNECTIONS = 5
# The time from the dot to the reply.
LATENCY_SECONDS = 0.2
BURST_SECONDS = 5.0
TOO_FAST = b"421 4.7.28 Gmail has detected an unusual rate of unsolicited mail originating from your IP address\r\n"
TOO_MANY = b"421 4.7.0 Too many concurrent connections from this address\r\n"


@dataclass(frozen=True)
class Phase:
    """A limit in messages a minute, for some seconds."""

    rate: float
    seconds: float


@dataclass
class Counts:
    """What a phase's last part has: accepted and refused messages, refused connections, and the most open ones."""

    accepted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    turned_away: int = 0
    most: int = 0


def main() -> None:
    options = _options()
    phases = [Phase(*map(float, text.split("x"))) for text in options.phases.split(",")]
    with tempfile.TemporaryDirectory() as folder, _name_server() as dns:
        log = Path(folder) / "receiver.log"
        port = free_port()
        with (
            other_process(_serve, phases, port, log),
            running_stack(
                Path(folder),
                DELIVERY_TRANSPORT="direct",
                DELIVERY_ALLOW_PRIVATE_NETWORKS="true",
                DIRECT_SMTP_PORT=str(port),
                DNS_SERVERS=dns,
                WORKER_CONCURRENCY=str(options.workers),
            ) as stack,
        ):
            _measure(stack, phases, log, waiting=options.waiting)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--phases", default=size("60x600,600x900,60x600", smoke="60x20"))
    parser.add_argument("--waiting", type=int, default=size(10_000, smoke=200))
    parser.add_argument("--workers", type=int, default=4)
    return parser.parse_args()


def _measure(stack: Stack, phases: list[Phase], log: Path, *, waiting: int) -> None:
    stack.start("web", WEB_CONCURRENCY="2")
    _fill(stack, waiting)
    stack.start("worker")
    began = time.time()
    end = began + sum(phase.seconds for phase in phases)
    number = 0
    while time.time() < end:
        number += 1
        for other in range(len(OTHERS)):
            stack.send(to=f"r{number}@other{other}.example")
        time.sleep(max(began + number - time.time(), 0))
    stack.kill("worker")
    _report(phases, log, stack)


def _report(phases: list[Phase], log: Path, stack: Stack) -> None:
    events = [json.loads(line) for line in log.read_text().splitlines()]
    first = min(event["at"] for event in events)
    start = 0.0
    for phase in phases:
        for after in (0.0, 180.0, 600.0 if phase.seconds > 600 else phase.seconds * 0.75):
            if after >= phase.seconds:
                continue
            low, high = first + start + after, first + start + phase.seconds
            part = [event for event in events if low <= event["at"] < high]
            accepted = sum(event["kind"] == "accepted" for event in part)
            refused = sum(event["kind"] == "refused" for event in part)
            away = sum(event["kind"] == "away" for event in part)
            most = max((event["open"] for event in part), default=0)
            share = accepted / (high - low) * 60 / phase.rate
            print(
                f"{phase.rate:.0f} a minute, from {after:.0f} s on: accepted {share:.2f} of it, refused"
                f" {100 * (refused + away) / max(accepted, 1):.1f} % ({refused} messages, {away} connections), at most"
                f" {most} connections",
                flush=True,
            )
            name = f"{phase.rate:.0f} a minute from {start:.0f} s on, after {after:.0f} s"
            record_figure(f"{name}: accepted of the rate", share, "")
            record_figure(f"{name}: refused of the accepted", (refused + away) / max(accepted, 1), "")
        start += phase.seconds
    delays = [delay for (delay,) in stack.query(OTHER_DELAYS)]
    p99 = statistics.quantiles(delays, n=100)[98] * 1000
    record_figure("other receivers: from acceptance to delivery, p99", p99, "ms")
    print(f"others: {len(delays)} delivered, p50 {statistics.median(delays) * 1000:.0f} ms, p99 {p99:.0f} ms")
    print(stack.query("SELECT status, count(*) FROM emails_email GROUP BY 1"))
    for row in stack.query("SELECT receiver, pace, leases, accepted, slowed, signal FROM emails_receiverpace"):
        print(row)
    print(stack.query("SELECT stage, count(*), max(attempts) FROM emails_pending GROUP BY 1"))


OTHER_DELAYS = """
SELECT extract(epoch FROM r.sent_at - e.created_at)::float
  FROM emails_email e JOIN emails_recipient r ON r.email_id = e.id
 WHERE r.address LIKE '%%@other%%' AND r.sent_at IS NOT NULL
"""


def _fill(stack: Stack, count: int) -> None:
    with psycopg.connect(stack.database, autocommit=True) as connection:
        (workspace,) = connection.execute("SELECT id FROM workspaces_workspace").fetchone()  # type: ignore[misc]
        (content,) = connection.execute(CONTENT).fetchone()  # type: ignore[misc]
        sql = FILL.replace("'@example.com'", "'@slow.example'").replace("'example.com'", "'slow.example'")
        for start in range(1, count + 1, CHUNK):
            stop = min(start + CHUNK - 1, count)
            values = {"workspace": workspace, "content": content, "stage": Stage.READY, "start": start, "stop": stop}
            connection.execute(sql, values)
        connection.execute("VACUUM ANALYZE")
    stack.manage("reconcile", "--repair")


def _name_server() -> "_Dns":
    return _Dns()


class _Dns:
    """A name server with a mail host for each receiver."""

    def __enter__(self) -> str:
        zones = {"slow.example": {"MX": ["10 mx.slow.example."]}, "mx.slow.example": {"A": [SLOW]}}
        for number, address in enumerate(OTHERS):
            zones[f"other{number}.example"] = {"MX": [f"10 mx.other{number}.example."]}
            zones[f"mx.other{number}.example"] = {"A": [address]}
        self._server = NameServer(zones)
        self._server.__enter__()
        host, port = self._server.address
        return f"{host}:{port}"

    def __exit__(self, *error: object) -> None:
        self._server.__exit__(*error)


def _serve(phases: list[Phase], port: int, log: Path, ports: Connection) -> None:
    async def serve() -> None:
        limit = _Limit(phases, log)
        servers = [await asyncio.start_server(limit.handle, SLOW, port, backlog=1000)]
        servers += [await asyncio.start_server(_handle_freely, host, port, backlog=1000) for host in OTHERS]
        ports.send(port)
        await asyncio.gather(*(server.serve_forever() for server in servers))

    asyncio.run(serve())


class _Limit:
    """The limits of the receiver. The phases begin with the first connection."""

    def __init__(self, phases: list[Phase], log: Path) -> None:
        self._phases = phases
        self._log = log.open("a", buffering=1)
        self._open = 0
        self._began: float | None = None
        self._tokens, self._at = 1.0, time.time()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._began = self._began or time.time()
        self._open += 1
        try:
            if self._open > CONNECTIONS:
                self._note("away")
                writer.write(TOO_MANY)
                return
            await _converse(reader, writer, self._accepts)
        except ConnectionError:
            pass
        finally:
            self._open -= 1
            writer.close()

    def _accepts(self) -> bool:
        now, rate = time.time(), self._rate()
        self._tokens = min(self._tokens + (now - self._at) * rate / 60, max(rate / 60 * BURST_SECONDS, 1.0))
        self._at = now
        is_accepted = self._tokens >= 1
        self._tokens -= is_accepted
        self._note("accepted" if is_accepted else "refused")
        return is_accepted

    def _rate(self) -> float:
        assert self._began
        passed = time.time() - self._began
        for phase in self._phases:
            if passed < phase.seconds:
                return phase.rate
            passed -= phase.seconds
        return self._phases[-1].rate

    def _note(self, kind: str) -> None:
        self._log.write(json.dumps({"at": time.time(), "kind": kind, "open": self._open}) + "\n")


async def _handle_freely(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await _converse(reader, writer, lambda: True)
    except ConnectionError:
        pass
    finally:
        writer.close()


async def _converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, accepts: Callable[[], bool]) -> None:
    """Receive messages until one is refused. accepts: whether the present one is accepted."""
    writer.write(b"220 mx ESMTP\r\n")
    while line := await reader.readline():
        verb = line[:4].upper()
        if verb == b"EHLO":
            writer.write(b"250-mx\r\n250 PIPELINING\r\n")
        elif verb == b"DATA":
            writer.write(b"354 go ahead\r\n")
            await reader.readuntil(b"\r\n.\r\n")
            await asyncio.sleep(LATENCY_SECONDS)
            if not accepts():
                writer.write(TOO_FAST)
                await writer.drain()
                return
            writer.write(b"250 2.0.0 ok\r\n")
        elif verb == b"QUIT":
            writer.write(b"221 bye\r\n")
            return
        else:
            writer.write(b"250 2.0.0 ok\r\n")


if __name__ == "__main__":
    main()
