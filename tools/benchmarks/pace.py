"""Benchmark of the pace: a receiver that accepts r messages a minute on c connections, beside nine without limits.

    .venv/bin/python -m tools.benchmarks.pace [--phases 60x600,600x600,60x600] [--waiting 10000] [--workers 4]

The receiver closes further connections with 421, and answers further messages with `421 4.7.28` after the dot. A token
bucket counts them. Meanwhile each second an email goes to each of the other receivers, as in the minute before. A phase
is a rate and seconds.
Requires DATABASE_URL of a server on which databases may be created.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
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
# The other receivers without the first one.
ALONE_SECONDS = size(60, smoke=3)
# A phase without its first minutes, and its last ones.
SETTLED_SECONDS = size(180, smoke=5)
MEASURED_SECONDS = size(120, smoke=10)
LEAST_ACCEPTED = size(0.85, smoke=0)
MOST_REFUSED = size(0.02, smoke=10)
# The p99 of the other receivers, to that without the first one.
MOST_DELAY = size(1.2, smoke=1000)
TOO_FAST = b"421 4.7.28 Gmail has detected an unusual rate of unsolicited mail originating from your IP address\r\n"
TOO_MANY = b"421 4.7.0 Too many concurrent connections from this address\r\n"


@dataclass(frozen=True)
class Phase:
    """A limit in messages a minute, for some seconds."""

    rate: float
    seconds: float


@dataclass(frozen=True)
class ReceivedEvent:
    """An event of the receiver.

    at: seconds since 1970.
    kind: accepted, refused, or away for a connection.
    open: connections at this time.
    """

    at: float
    kind: str
    open: int


@dataclass(frozen=True)
class Counts:
    """The accepted and refused messages and the refused connections of a time."""

    accepted: int
    refused: int
    turned_away: int


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
    # As many processes as WORKER_CONCURRENCY says.
    stack.start("workers")
    alone = time.time()
    _send_to_others(stack, ALONE_SECONDS)
    stack.kill("workers")
    _fill(stack, waiting)
    stack.start("workers")
    began = time.time()
    _send_to_others(stack, sum(phase.seconds for phase in phases))
    stack.kill("workers")
    _report(phases, log)
    settled = began + min(SETTLED_SECONDS, phases[0].seconds / 2)
    times = {
        "alone": (alone, alone + ALONE_SECONDS),
        "while the first ones begin to wait": (began, settled),
        "beside those that wait": (settled, time.time()),
    }
    p99 = {name: _report_delays(stack, name, span) for name, span in times.items()}
    ratio = p99["beside those that wait"] / p99["alone"]
    record_figure("the other receivers: p99 to that alone", ratio, "", at_most=MOST_DELAY)


def _send_to_others(stack: Stack, seconds: float) -> None:
    """Send an email to each of the other receivers once a second."""
    began = time.time()
    number = 0
    while time.time() < began + seconds:
        number += 1
        for other in range(len(OTHERS)):
            stack.send(to=f"r{number}@other{other}.example")
        time.sleep(max(began + number - time.time(), 0))


def _report(phases: list[Phase], log: Path) -> None:
    events = [ReceivedEvent(**json.loads(line)) for line in log.read_text().splitlines()]
    start = min(event.at for event in events)
    for phase in phases:
        name = f"{phase.rate:.0f} a minute"
        found = _part(events, start + SETTLED_SECONDS, start + phase.seconds)
        refused = (found.refused + found.turned_away) / max(found.accepted, 1)
        record_figure(f"{name}: refused of the accepted, after three minutes", refused, "", at_most=MOST_REFUSED)
        found = _part(events, start + phase.seconds - MEASURED_SECONDS, start + phase.seconds)
        share = found.accepted / MEASURED_SECONDS * 60 / phase.rate
        record_figure(f"{name}: accepted of it in the last minutes", share, "", at_least=LEAST_ACCEPTED)
        start += phase.seconds
    most = max(event.open for event in events)
    record_figure(f"open connections, of {CONNECTIONS} that the receiver takes", most, "", at_most=CONNECTIONS + 1)


def _report_delays(stack: Stack, name: str, span: tuple[float, float]) -> float:
    """Record the delays of the emails to the other receivers that were accepted in a time; return the p99 in ms."""
    delays = [float(delay) * 1000 for (delay,) in stack.query(OTHER_DELAYS, *span)]
    p99 = statistics.quantiles(delays, n=100)[98]
    record_figure(f"the other receivers, {name}: accepted to sent, p50", statistics.median(delays), "ms")
    record_figure(f"the other receivers, {name}: accepted to sent, p99", p99, "ms")
    return p99


def _part(events: list[ReceivedEvent], begin: float, end: float) -> Counts:
    part = [event for event in events if begin <= event.at < end]
    kinds = Counter(event.kind for event in part)
    return Counts(kinds["accepted"], kinds["refused"], kinds["away"])


OTHER_DELAYS = """
SELECT extract(epoch FROM r.sent_at - e.created_at)::float
  FROM emails_email e JOIN emails_recipient r ON r.email_id = e.id
 WHERE r.address LIKE '%%@other%%' AND r.sent_at IS NOT NULL
   AND e.created_at BETWEEN to_timestamp(%s) AND to_timestamp(%s)
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
