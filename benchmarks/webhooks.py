"""Posts per second to one endpoint: this service's poster, and its whole drain, against `requests` with 16 threads.

    .venv/bin/python -m benchmarks.webhooks

All three post the same body with the same headers to the same receiver over connections that are kept, in turns, in one
run; the receiver is a process of its own. The drain also claims from the database and records into it; it needs
DATABASE_URL of a server on which databases may be created.
"""

import asyncio
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import requests

from network.addresses import Guard
from network.http import Rules
from network.resolver import Resolver
from tests.flows.stack import running_stack
from webhooks.post import HEADERS, Poster
from webhooks.signing import new_secret, signature_headers

ROUNDS = 3
POSTS = 6000
THREADS = 16
IN_FLIGHT = 32
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


def with_poster(url: str) -> float:
    async def run() -> float:
        poster = Poster(Rules(guard=Guard(allow_private=True)), resolver=Resolver())
        left = iter(range(POSTS))

        async def session() -> None:
            for _ in left:
                attempt = await poster.post(url, body=BODY, headers=headers())
                assert not attempt.error, attempt

        started = time.monotonic()
        await asyncio.gather(*(session() for _ in range(IN_FLIGHT)))
        seconds = time.monotonic() - started
        await poster.close()
        return POSTS / seconds

    return asyncio.run(run())


def with_requests(url: str) -> float:
    local = threading.local()

    def post(_: int) -> None:
        if not hasattr(local, "session"):
            local.session = requests.Session()
        assert local.session.post(url, data=BODY, headers={**HEADERS, **headers()}, timeout=15).ok

    started = time.monotonic()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(post, range(POSTS)))
    return POSTS / (time.monotonic() - started)


def with_drain(url: str, folder: Path) -> Callable[[], float]:
    """Set up a database with an endpoint; return a function that fills the queue and empties it."""
    import django  # noqa: PLC0415 - the settings need the stack's environment

    django.setup()
    from django.utils import timezone  # noqa: PLC0415

    from keys.ids import new_id  # noqa: PLC0415
    from webhooks.announcing import Announcement, announce  # noqa: PLC0415
    from webhooks.models import WebhookDelivery  # noqa: PLC0415
    from webhooks.sending import webhooks_drain  # noqa: PLC0415
    from webhooks.services import create_webhook  # noqa: PLC0415
    from workspaces.models import Workspace  # noqa: PLC0415

    workspace = Workspace.objects.get()
    create_webhook(workspace, url=url, events=["delivered"])

    def run() -> float:
        data = {"subject": "Hello " * 100}
        for _ in range(POSTS // 100):
            now = timezone.now()
            announce(Announcement(workspace.id, "delivered", new_id("evt_"), now, data) for _ in range(100))
        started = time.monotonic()
        webhooks_drain().run()
        seconds = time.monotonic() - started
        assert not WebhookDelivery.objects.exclude(status="succeeded").exists()
        return POSTS / seconds

    return run


def main() -> None:
    ports: Queue[int] = multiprocessing.Queue()
    receiver = multiprocessing.Process(target=receive, args=[ports], daemon=True)
    receiver.start()
    url = f"http://127.0.0.1:{ports.get()}/hook"
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        os.environ.update(stack.environment, DJANGO_SETTINGS_MODULE="config.settings")
        drained = with_drain(url, Path(folder))
        rounds = [(with_poster(url), with_requests(url), drained()) for _ in range(ROUNDS)]
    receiver.terminate()
    for name, rates in zip(
        ("the poster", f"requests, {THREADS} threads", "the drain"), zip(*rounds, strict=True), strict=True
    ):
        print(f"{name}: {statistics.median(rates):.0f} posts/s")
    print(f"ratio {statistics.median(ours / theirs for ours, theirs, _ in rounds):.1f} (at least 4)")


if __name__ == "__main__":
    main()
