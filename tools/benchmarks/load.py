"""Benchmark of an overload: twice the sustainable request rate, its responses, lost emails and recovery time.

    .venv/bin/python -m tools.benchmarks.load [minutes]

First it measures the sustainable rate of POST /v1/emails/send with a closed loop (each client waits for its answer)
for 20 seconds, while workers deliver. Then an open loop sends at twice that rate without waiting for answers, for 10
minutes by default. Afterwards every accepted email must be delivered exactly once. Requires DATABASE_URL of a server
on which databases may be created.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from core.lib.ids import to_uuid
from tests.stack.stack import Stack, running_stack
from tools.benchmarks.figures import record_figure
from tools.benchmarks.sinks import recording_smtp_sink
from tools.benchmarks.sizes import size

MINUTES = size(10.0, smoke=0.05)
SUSTAINED_SECONDS = size(20.0, smoke=1.0)
CONCURRENCY = 32
OVERLOAD_FACTOR = 2
# Longer than any answer takes; a real client gives up eventually, too.
CLIENT_TIMEOUT_SECONDS = 30.0
EXPECTED_STATUSES = frozenset({"202", "429", "503"})
# The service has recovered after this many fast answers in a row.
RECOVERED_ANSWERS = 20
DELIVERED_SECONDS = 3600.0
HTML = "<p>Thanks!</p>" * 60
FINAL = ("sent", "delivered", "opened", "clicked")
UNFINISHED = "SELECT id FROM unnest(%s::uuid[]) AS accepted (id) WHERE NOT EXISTS (SELECT FROM emails_recipient r WHERE r.email_id = accepted.id AND r.state = ANY(%s))"  # noqa: E501
QUEUE_DEPTH = "SELECT (SELECT count(*) FROM emails_pending)"


@dataclass
class LoadClient:
    """Client that sends emails, each on a new connection to a new address, and records the responses."""

    port: int
    key: str
    numbers: Iterator[int] = field(default_factory=count)
    # Counts by status, or by connection error.
    responses: Counter[str] = field(default_factory=Counter)
    # Ids of accepted emails by address; seconds of each answer by status.
    accepted: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    async def send(self) -> str:
        address = f"load+{next(self.numbers)}@example.com"
        started = time.perf_counter()
        status, body = await self._ask(address)
        self.responses[status] += 1
        self.seconds.setdefault(status, []).append(time.perf_counter() - started)
        if status == "202":
            self.accepted[address] = json.loads(body)["id"]
        return status

    async def _ask(self, address: str) -> tuple[str, bytes]:
        try:
            async with asyncio.timeout(CLIENT_TIMEOUT_SECONDS):
                return await self._exchange(self._request(address))
        except TimeoutError:
            return "no answer in time", b""
        except ConnectionRefusedError:
            return "refused", b""
        except (OSError, asyncio.IncompleteReadError):
            return "broken off", b""

    async def _exchange(self, request: bytes) -> tuple[str, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.read()
            return head[9:12].decode(), body
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _request(self, address: str) -> bytes:
        body = json.dumps({"from": "hello@demo.example", "to": address, "subject": "Your receipt", "html": HTML})
        head = (
            f"POST /v1/emails/send HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return (head + body).encode()


async def closed_loop(client: LoadClient, *, seconds: float) -> float:
    """Send with callers that wait for each answer; return accepted emails per second."""
    until, before = time.monotonic() + seconds, len(client.accepted)

    async def caller() -> None:
        while time.monotonic() < until:
            await client.send()

    await asyncio.gather(*(caller() for _ in range(CONCURRENCY)))
    return (len(client.accepted) - before) / seconds


async def open_loop(client: LoadClient, *, rate: float, seconds: float) -> None:
    """Start a request every 1/rate seconds, independent of earlier ones; return when all have ended."""
    started, begun = time.monotonic(), 0
    async with asyncio.TaskGroup() as group:
        while (passed := time.monotonic() - started) < seconds:
            while begun < passed * rate:
                group.create_task(client.send())
                begun += 1
            await asyncio.sleep(0.005)


async def seconds_until_recovered(client: LoadClient, *, normal_seconds: float) -> float:
    """Return the seconds until RECOVERED_ANSWERS answers in a row arrive within `normal_seconds`."""
    started = recovered_at = time.monotonic()
    in_a_row = 0
    while in_a_row < RECOVERED_ANSWERS:
        request_started = time.monotonic()
        status = await client.send()
        in_a_row = in_a_row + 1 if status == "202" and time.monotonic() - request_started <= normal_seconds else 0
        if not in_a_row:
            recovered_at = time.monotonic()
        assert time.monotonic() - started < 600, "not recovered within ten minutes"
        await asyncio.sleep(0.1)
    return recovered_at - started


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        received_log = folder / "received"
        with recording_smtp_sink(received_log) as port:
            transport = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{port}?tls=none"}
            with running_stack(folder, WEB_CONCURRENCY="0", WEB_MAX_WAIT_MS="1000", **transport) as stack:
                stack.start("web", "worker", "beat")
                measure(stack, received_log, minutes=minutes)


def measure(stack: Stack, received_log: Path, *, minutes: float) -> None:
    baseline = LoadClient(int(stack.environment["PORT"]), stack.key)
    asyncio.run(send_sequentially(baseline, 100))
    normal_seconds = max(statistics.quantiles(baseline.seconds["202"], n=100)[98] * 2, 0.1)
    rate = asyncio.run(closed_loop(baseline, seconds=SUSTAINED_SECONDS))
    print(f"sustained: {rate:.0f}/s; a normal answer takes up to {normal_seconds * 1000:.0f} ms", flush=True)
    wait_until_delivered(stack)

    overload = LoadClient(baseline.port, baseline.key, numbers=count(10_000_000))
    asyncio.run(open_loop(overload, rate=OVERLOAD_FACTOR * rate, seconds=minutes * 60))
    report(overload, rate=rate, minutes=minutes)
    after = LoadClient(baseline.port, baseline.key, numbers=count(100_000_000))
    recovery_seconds = asyncio.run(seconds_until_recovered(after, normal_seconds=normal_seconds))
    delivery_seconds = wait_until_delivered(stack)
    total_seconds = recovery_seconds + delivery_seconds
    print(f"response times are normal after {recovery_seconds:.1f} s; all is delivered after {total_seconds:.0f} s")
    record_figure("seconds until response times are normal again", recovery_seconds, "s", at_most=60)
    record_figure("seconds until all accepted emails are delivered", total_seconds, "s")
    check_deliveries(stack, received_log, {**baseline.accepted, **overload.accepted, **after.accepted})


async def send_sequentially(client: LoadClient, times: int) -> None:
    for _ in range(times):
        await client.send()


def report(client: LoadClient, *, rate: float, minutes: float) -> None:
    print(
        f"{OVERLOAD_FACTOR * rate:.0f}/s for {minutes:g} minutes: {sum(client.responses.values()):,} requests",
        flush=True,
    )
    for status, times in client.responses.most_common():
        ordered = sorted(client.seconds[status])
        p50, p99 = statistics.median(ordered), ordered[int(len(ordered) * 0.99)]
        print(f"  {status}: {times:,}, p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms", flush=True)
    other = sum(times for status, times in client.responses.items() if status not in EXPECTED_STATUSES)
    record_figure("sustainable request rate", rate, "/s")
    record_figure("requests accepted at twice that rate", client.responses["202"] / (minutes * 60), "/s")
    record_figure("requests without a 202, 429 or 503 response", other, "", at_most=0)


def wait_until_delivered(stack: Stack) -> float:
    """Wait until the queue is empty; return the seconds."""
    started = time.monotonic()
    while stack.query(QUEUE_DEPTH) != [(0,)]:
        assert time.monotonic() - started < DELIVERED_SECONDS, "not delivered within an hour"
        time.sleep(0.5)
    return time.monotonic() - started


def check_deliveries(stack: Stack, received_log: Path, accepted: dict[str, str]) -> None:
    """Compare the accepted emails with the database and with the received messages."""
    ids = [to_uuid(id_) for id_ in accepted.values()]
    unsent = stack.query(UNFINISHED, ids, list(FINAL))
    received = Counter(received_log.read_text().splitlines())
    missing = [address for address in accepted if not received[address]]
    duplicated = [address for address, times in received.items() if times > 1]
    print(
        f"{len(accepted):,} accepted, {sum(received.values()):,} received:"
        f" {len(missing)} missing, {len(duplicated)} twice"
    )
    record_figure("accepted emails that were lost", len({*missing, *(str(id_) for (id_,) in unsent)}), "", at_most=0)
    record_figure("emails delivered twice", len(duplicated), "", at_most=0)


if __name__ == "__main__":
    main()
