"""Benchmark of webhook requests per second to one endpoint, compared with `requests` in 16 threads.

    .venv/bin/python -m tools.benchmarks.webhooks

It measures the HTTP client alone and the whole queue processor, which also claims from the database and records the
attempts. All three send the same body with the same headers to the same receiver process over persistent connections,
in turns. Before them it measures the delay of webhooks after their events. Requires DATABASE_URL of a server on which
databases may be created.
"""

import asyncio
import functools
import json
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import requests

from core.lib.network.address_guard import Guard
from core.lib.network.resolver import Resolver
from core.lib.network.target_urls import UrlRules
from tests.stack.stack import Stack, running_stack, wait_for
from tests.webhooks.receiver import Received, Receiver
from tools.benchmarks.figures import record_figure
from tools.benchmarks.processes import other_process
from tools.benchmarks.sizes import size
from webhooks.sending.post import Poster
from webhooks.sending.signing import HEADERS, new_secret, signature_headers

ROUNDS = size(3, smoke=1)
POSTS = size(6000, smoke=200)
THREADS = 16
DELAYED = size(200, smoke=3)
IN_FLIGHT = 32
NAMES = ("the HTTP client", f"requests, {THREADS} threads", "the queue processor")
BODY = b'{"id":"evt_1","type":"email.delivered","data":{"subject":"' + b"Hello " * 100 + b'"}}'
SECRET = new_secret()


class HttpResponder(asyncio.Protocol):
    """Minimal HTTP server that answers 200 to every complete request."""

    def connection_made(self, transport: Any) -> None:
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, rest = self.buffer.partition(b"\r\n\r\n")
            size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            if len(rest) < size:
                return
            self.buffer = rest[size:]
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def receive(ports: Connection) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(HttpResponder, "127.0.0.1", 0)
        ports.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def headers() -> dict[str, str]:
    return signature_headers(BODY, message_id="evt_1", timestamp=int(time.time()), keys=[SECRET])


@dataclass(frozen=True)
class PostRate:
    """The figures of a measurement.

    rate: requests per second.
    cpu: microseconds of CPU time per request, less affected by a busy machine.
    """

    rate: float
    cpu: float


def measure(posts: Callable[[], None]) -> PostRate:
    cpu, started = time.process_time(), time.monotonic()
    posts()
    seconds = time.monotonic() - started
    return PostRate(POSTS / seconds, (time.process_time() - cpu) / POSTS * 1e6)


def post_with_poster(url: str) -> None:
    async def run() -> None:
        poster = Poster(UrlRules(guard=Guard(allow_private=True)), resolver=Resolver())
        left = iter(range(POSTS))

        async def session() -> None:
            for _ in left:
                attempt = await poster.post(url, body=BODY, headers=headers())
                assert not attempt.error, attempt

        await asyncio.gather(*(session() for _ in range(IN_FLIGHT)))
        await poster.close()

    asyncio.run(run())


def post_with_requests(url: str) -> None:
    local = threading.local()

    def post(_: int) -> None:
        if not hasattr(local, "session"):
            local.session = requests.Session()
        assert local.session.post(url, data=BODY, headers={**HEADERS, **headers()}, timeout=15).ok

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(post, range(POSTS)))


def prepare_queue(url: str) -> Callable[[], PostRate]:
    """Create an endpoint; return a function that fills the queue and measures the queue processor."""
    import django  # noqa: PLC0415 - the settings need the stack's environment

    django.setup()
    from django.utils import timezone  # noqa: PLC0415

    from core.lib.ids import new_id  # noqa: PLC0415
    from core.workspaces.models import Workspace  # noqa: PLC0415
    from events.rendering import RenderedEvent  # noqa: PLC0415
    from webhooks.models import WebhookDelivery  # noqa: PLC0415
    from webhooks.publishing import insert_deliveries  # noqa: PLC0415
    from webhooks.sending.webhooks_work import webhooks_processor  # noqa: PLC0415
    from webhooks.services import create_webhook  # noqa: PLC0415

    workspace = Workspace.objects.get()
    webhook, _ = create_webhook(workspace, url=url, events=["delivered"])

    def run() -> PostRate:
        data = {"subject": "Hello " * 100}
        for _ in range(POSTS // 100):
            now = timezone.now()
            events = [RenderedEvent(new_id("evt_"), workspace.id, "delivered", now, data) for _ in range(100)]
            insert_deliveries([(event, webhook.id) for event in events])
        rate = measure(webhooks_processor().run)
        # The endpoint of the delays is gone, and may have missed some.
        assert not WebhookDelivery.objects.filter(webhook=webhook).exclude(status="succeeded").exists()
        return rate

    return run


def run_round(url: str, process_queue: Callable[[], PostRate]) -> tuple[PostRate, PostRate, PostRate]:
    return (
        measure(functools.partial(post_with_poster, url)),
        measure(functools.partial(post_with_requests, url)),
        process_queue(),
    )


def measure_delays(stack: Stack) -> None:
    """Report the delay of a webhook after its event, with emails that arrive one by one at random times."""
    with Receiver() as receiver:
        hook = {"url": receiver.url("/hook"), "events": ["sent"]}
        assert stack.call("POST", "/webhooks", hook).status == HTTPStatus.CREATED
        for number in range(DELAYED):
            stack.send(to=f"delivered+{number}@simulator.example")
            time.sleep(random.uniform(0.1, 0.5))
        wait_for(lambda: len(receiver.received) >= DELAYED, seconds=60, what="all webhooks")
        delays = sorted(_delay_seconds(request) for request in receiver.received)
    print(f"delay of a webhook: p50 {delays[DELAYED // 2]:.2f} s, p99 {delays[DELAYED * 99 // 100]:.2f} s")
    record_figure("delay of a webhook after its event, p50", delays[DELAYED // 2], "s")
    record_figure("delay of a webhook after its event, p99", delays[DELAYED * 99 // 100], "s", at_most=1)


def _delay_seconds(request: Received) -> float:
    # The receiver has the time of the monotonic clock.
    received_at = request.at + time.time() - time.monotonic()
    return received_at - datetime.fromisoformat(json.loads(request.body)["createdAt"]).timestamp()


def main() -> None:
    with (
        other_process(receive) as port,
        tempfile.TemporaryDirectory() as folder,
        running_stack(Path(folder)) as stack,
    ):
        os.environ.update(stack.environment, DJANGO_SETTINGS_MODULE="config.settings")
        stack.start("web", "worker")
        measure_delays(stack)
        stack.stop(["web", "worker"])
        url = f"http://127.0.0.1:{port}/hook"
        process_queue = prepare_queue(url)
        rounds = [run_round(url, process_queue) for _ in range(ROUNDS)]
    for name, rates in zip(NAMES, zip(*rounds, strict=True), strict=True):
        rate, cpu = (statistics.median(getattr(rate, part) for rate in rates) for part in ("rate", "cpu"))
        record_figure(f"webhook requests, {name}", rate, "/s")
        print(f"{name}: {rate:.0f} requests/s, {cpu:.0f} µs of CPU time each")
    ratio = statistics.median(ours.rate / theirs.rate for ours, theirs, _ in rounds)
    cpu_ratio = statistics.median(theirs.cpu / ours.cpu for ours, theirs, _ in rounds)
    record_figure("webhook requests, ratio to requests with 16 threads", ratio, at_least=4)
    record_figure("webhook requests, the same ratio in CPU time", cpu_ratio)
    print(f"ratio {ratio:.1f} (at least 4), in CPU time {cpu_ratio:.1f}")


if __name__ == "__main__":
    main()
