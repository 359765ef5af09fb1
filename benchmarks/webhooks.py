"""Posts per second to one endpoint: this service's poster, and its whole drain, against `requests` with 16 threads.

    .venv/bin/python -m benchmarks.webhooks

All three post the same body with the same headers to the same receiver over connections that are kept, in turns, in one
run; the receiver is a process of its own. The drain also claims from the database and records into it; it needs
DATABASE_URL of a server on which databases may be created.
"""

import asyncio
import functools
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import requests

from benchmarks.figures import figure
from lib.address_guard import Guard
from lib.guarded_http import Rules
from lib.resolver import Resolver
from tests.stack.stack import running_stack
from webhooks.sending.post import HEADERS, Poster
from webhooks.sending.signing import new_secret, signature_headers

ROUNDS = 3
POSTS = 6000
THREADS = 16
IN_FLIGHT = 32
NAMES = ("the poster", f"requests, {THREADS} threads", "the drain")
BODY = b'{"id":"evt_1","type":"email.delivered","data":{"subject":"' + b"Hello " * 100 + b'"}}'
SECRET = new_secret()


class Echo(asyncio.Protocol):
    """The least that answers HTTP: 200 for every request whose body has arrived."""

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


def receive(ports: "Queue[int]") -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def headers() -> dict[str, str]:
    return signature_headers(BODY, message_id="evt_1", timestamp=int(time.time()), keys=[SECRET])


@dataclass(frozen=True)
class Speed:
    """rate: posts a second. cpu: microseconds of this process a post, which a busy machine changes less."""

    rate: float
    cpu: float


def measured(posts: Callable[[], None]) -> Speed:
    cpu, started = time.process_time(), time.monotonic()
    posts()
    seconds = time.monotonic() - started
    return Speed(POSTS / seconds, (time.process_time() - cpu) / POSTS * 1e6)


def with_poster(url: str) -> None:
    async def run() -> None:
        poster = Poster(Rules(guard=Guard(allow_private=True)), resolver=Resolver())
        left = iter(range(POSTS))

        async def session() -> None:
            for _ in left:
                attempt = await poster.post(url, body=BODY, headers=headers())
                assert not attempt.error, attempt

        await asyncio.gather(*(session() for _ in range(IN_FLIGHT)))
        await poster.close()

    asyncio.run(run())


def with_requests(url: str) -> None:
    local = threading.local()

    def post(_: int) -> None:
        if not hasattr(local, "session"):
            local.session = requests.Session()
        assert local.session.post(url, data=BODY, headers={**HEADERS, **headers()}, timeout=15).ok

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(post, range(POSTS)))


def with_drain(url: str) -> Callable[[], Speed]:
    """Create an endpoint; return a function that fills the queue, then measures how it is emptied."""
    import django  # noqa: PLC0415 - the settings need the stack's environment

    django.setup()
    from django.utils import timezone  # noqa: PLC0415

    from lib.ids import new_id  # noqa: PLC0415
    from webhooks.models import WebhookDelivery  # noqa: PLC0415
    from webhooks.publish import Announcement, announce  # noqa: PLC0415
    from webhooks.sending.sending import webhooks_drain  # noqa: PLC0415
    from webhooks.services import create_webhook  # noqa: PLC0415
    from workspaces.models import Workspace  # noqa: PLC0415

    workspace = Workspace.objects.get()
    create_webhook(workspace, url=url, events=["delivered"])

    def run() -> Speed:
        data = {"subject": "Hello " * 100}
        for _ in range(POSTS // 100):
            now = timezone.now()
            announce(Announcement(workspace.id, "delivered", new_id("evt_"), now, data) for _ in range(100))
        speed = measured(webhooks_drain().run)
        assert not WebhookDelivery.objects.exclude(status="succeeded").exists()
        return speed

    return run


def one_round(url: str, drain: Callable[[], Speed]) -> tuple[Speed, Speed, Speed]:
    return measured(functools.partial(with_poster, url)), measured(functools.partial(with_requests, url)), drain()


def main() -> None:
    ports: Queue[int] = multiprocessing.Queue()
    receiver = multiprocessing.Process(target=receive, args=[ports], daemon=True)
    receiver.start()
    url = f"http://127.0.0.1:{ports.get()}/hook"
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        os.environ.update(stack.environment, DJANGO_SETTINGS_MODULE="config.settings")
        drain = with_drain(url)
        rounds = [one_round(url, drain) for _ in range(ROUNDS)]
    receiver.terminate()
    for name, speeds in zip(NAMES, zip(*rounds, strict=True), strict=True):
        rate, cpu = (statistics.median(getattr(speed, part) for speed in speeds) for part in ("rate", "cpu"))
        figure(f"webhook posts of {name}", rate, "/s")
        print(f"{name}: {rate:.0f} posts/s, {cpu:.0f} µs of processor time each")
    ratio = statistics.median(ours.rate / theirs.rate for ours, theirs, _ in rounds)
    cpu_ratio = statistics.median(theirs.cpu / ours.cpu for ours, theirs, _ in rounds)
    figure("webhook posts, ratio to requests with 16 threads", ratio, at_least=4)
    figure("the same in processor time", cpu_ratio)
    print(f"ratio {ratio:.1f} (at least 4), in processor time {cpu_ratio:.1f}")


if __name__ == "__main__":
    main()
