"""Twice as many requests as the service can answer, for minutes: what is lost, what is told, how soon it is over.

    .venv/bin/python -m benchmarks.load [minutes]

First the sustainable rate of POST /v1/emails/send: callers that wait for each answer, for 20 seconds, while workers
deliver. Then an open loop at twice that rate, in which nobody waits for anybody, for 10 minutes unless told otherwise.
Afterwards everything accepted must be delivered, once. Needs DATABASE_URL of a server on which databases may be
created.
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

from benchmarks.figures import figure
from benchmarks.sinks import noting_sink
from lib.ids import to_uuid
from tests.stack.stack import Stack, running_stack

MINUTES = 10.0
SUSTAINED_SECONDS = 20.0
CONCURRENCY = 32
TIMES = 2
# As a client would, that gives up in the end; nobody is answered that late.
PATIENCE_SECONDS = 30.0
HONEST = frozenset({"202", "429", "503"})
# So many in a row as fast as before: recovered.
CALM = 20
DELIVERED_SECONDS = 3600.0
HTML = "<p>Thanks!</p>" * 60
FINAL = ("sent", "delivered", "opened", "clicked")
NOT_FINAL = "SELECT id FROM unnest(%s::uuid[]) AS told (id) WHERE NOT EXISTS (SELECT FROM emails_recipient r WHERE r.email_id = told.id AND r.state = ANY(%s))"  # noqa: E501
LEFT = "SELECT (SELECT count(*) FROM emails_pending)"


@dataclass
class Client:
    """Sends emails, a connection and an address each, and writes down what it is told."""

    port: int
    key: str
    numbers: Iterator[int] = field(default_factory=count)
    # By status, or by what kept an answer from coming.
    told: Counter[str] = field(default_factory=Counter)
    # Address and id of what was accepted; seconds of each answer, by status.
    accepted: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    async def send(self) -> str:
        address = f"load+{next(self.numbers)}@example.com"
        started = time.perf_counter()
        status, body = await self._ask(address)
        self.told[status] += 1
        self.seconds.setdefault(status, []).append(time.perf_counter() - started)
        if status == "202":
            self.accepted[address] = json.loads(body)["id"]
        return status

    async def _ask(self, address: str) -> tuple[str, bytes]:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
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


async def closed_loop(client: Client, *, seconds: float) -> float:
    """Return accepted emails per second of callers who wait for their answers."""
    until, before = time.monotonic() + seconds, len(client.accepted)

    async def caller() -> None:
        while time.monotonic() < until:
            await client.send()

    await asyncio.gather(*(caller() for _ in range(CONCURRENCY)))
    return (len(client.accepted) - before) / seconds


async def open_loop(client: Client, *, rate: float, seconds: float) -> None:
    """Begin a request every 1/rate seconds, whatever became of those before; return when all have ended."""
    started, begun = time.monotonic(), 0
    async with asyncio.TaskGroup() as group:
        while (passed := time.monotonic() - started) < seconds:
            while begun < passed * rate:
                group.create_task(client.send())
                begun += 1
            await asyncio.sleep(0.005)


async def seconds_until_calm(client: Client, *, normal: float) -> float:
    """Return how long it takes until CALM answers in a row come within `normal` seconds."""
    started = calm_since = time.monotonic()
    in_a_row = 0
    while in_a_row < CALM:
        began = time.monotonic()
        status = await client.send()
        in_a_row = in_a_row + 1 if status == "202" and time.monotonic() - began <= normal else 0
        if not in_a_row:
            calm_since = time.monotonic()
        assert time.monotonic() - started < 600, "no calm in ten minutes"
        await asyncio.sleep(0.1)
    return calm_since - started


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        notes = folder / "captured"
        with noting_sink(notes) as port:
            transport = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{port}?tls=none"}
            with running_stack(folder, WEB_CONCURRENCY="0", **transport) as stack:
                stack.start("web", "worker", "beat")
                measure(stack, notes, minutes=minutes)


def measure(stack: Stack, notes: Path, *, minutes: float) -> None:
    calm = Client(int(stack.environment["PORT"]), stack.key)
    asyncio.run(one_by_one(calm, 100))
    normal = max(statistics.quantiles(calm.seconds["202"], n=100)[98] * 2, 0.1)
    rate = asyncio.run(closed_loop(calm, seconds=SUSTAINED_SECONDS))
    print(f"sustained: {rate:.0f}/s; an answer is normal within {normal * 1000:.0f} ms", flush=True)
    wait_until_delivered(stack)

    storm = Client(calm.port, calm.key, numbers=count(10_000_000))
    asyncio.run(open_loop(storm, rate=TIMES * rate, seconds=minutes * 60))
    report(storm, rate=rate, minutes=minutes)
    after = Client(calm.port, calm.key, numbers=count(100_000_000))
    recovery = asyncio.run(seconds_until_calm(after, normal=normal))
    drained = wait_until_delivered(stack)
    print(f"answers are normal again after {recovery:.1f} s; all is delivered after {recovery + drained:.0f} s")
    figure("load: seconds until answers are normal again", recovery, "s", at_most=60)
    figure("load: seconds until what was accepted is delivered", recovery + drained, "s")
    audit(stack, notes, {**calm.accepted, **storm.accepted, **after.accepted})


async def one_by_one(client: Client, times: int) -> None:
    for _ in range(times):
        await client.send()


def report(client: Client, *, rate: float, minutes: float) -> None:
    print(f"{TIMES * rate:.0f}/s for {minutes:g} minutes: {sum(client.told.values()):,} requests", flush=True)
    for status, times in client.told.most_common():
        ordered = sorted(client.seconds[status])
        p50, p99 = statistics.median(ordered), ordered[int(len(ordered) * 0.99)]
        print(f"  {status}: {times:,}, p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms", flush=True)
    other = sum(times for status, times in client.told.items() if status not in HONEST)
    figure("load: sustainable requests", rate, "/s")
    figure("load: accepted at twice that", client.told["202"] / (minutes * 60), "/s")
    figure("load: answers that are neither 202, 429 nor 503, and requests without one", other, "", at_most=0)


def wait_until_delivered(stack: Stack) -> float:
    """Return how long it took until nothing waited any more."""
    started = time.monotonic()
    while stack.query(LEFT) != [(0,)]:
        assert time.monotonic() - started < DELIVERED_SECONDS, "not delivered in an hour"
        time.sleep(0.5)
    return time.monotonic() - started


def audit(stack: Stack, notes: Path, accepted: dict[str, str]) -> None:
    """Compare what clients were told with the database, and with what has arrived."""
    ids = [to_uuid(id_) for id_ in accepted.values()]
    unsent = stack.query(NOT_FINAL, ids, list(FINAL))
    arrived = Counter(notes.read_text().splitlines())
    missing = [address for address in accepted if not arrived[address]]
    twice = [address for address, times in arrived.items() if times > 1]
    print(f"{len(accepted):,} accepted, {sum(arrived.values()):,} arrived: {len(missing)} missing, {len(twice)} twice")
    figure("load: accepted emails that were lost", len({*missing, *(str(id_) for (id_,) in unsent)}), "", at_most=0)
    figure("load: emails that came twice", len(twice), "", at_most=0)


if __name__ == "__main__":
    main()
