"""gunicorn's threaded worker, with a share of each process for each workspace (docs/decisions/0178).

The main thread receives requests. A request thread gets one that is complete, and never waits for the client: the
thread of slow clients sends bytes that the client does not read at once.
"""

import json
import signal
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from selectors import EVENT_READ
from types import FrameType
from typing import Any

from gunicorn.http import get_parser
from gunicorn.workers.gthread import TConn, ThreadWorker

from config.web.arriving import HEAD_BYTES, ArrivingRequest, HeadTooLarge
from config.web.fair_pool import FairPool
from config.web.stop import WAITING_FOR_PROXY, stage
from core.api.errors import too_many_waiting
from core.lib.network.client_address import is_trusted_proxy
from core.lib.network.slow_clients import slow_clients

# A process that gets SIGTERM waits this long for the decision of its arbiter, which may get the signal as well.
DECISION_SECONDS = 0.2
# A request must be complete in this time after it was accepted, and a second more for each LEAST_BYTES of its body.
ARRIVAL_SECONDS = 10.0
LEAST_BYTES = 16 * 1024
READ_BYTES = 256 * 1024
# The main thread rests before it accepts, for each request that waits for a thread: so it reads several at a time, and
# connections go to the process with fewer of them.
REST_SECONDS = 0.0002
MAX_REST_SECONDS = 0.006
# Connections accepted at a time.
MAX_ACCEPTED = 64
# How soon a thread that computes yields to one that has waited for the database, in a process that answers expensive
# requests: with the other interval, a request beside two that render batches would take ten times as long. Most
# requests compute for less than either, and switching earlier takes a tenth of the processor time.
SWITCH_SECONDS, QUICK_SWITCH_SECONDS = 0.005, 0.0005
# Connections whose requests are incomplete. A new one ends the oldest. One network may have a quarter.
MAX_ARRIVING = 500
SHARE_OF_ARRIVING = 4
# Complete requests of one share that wait for a thread, besides those that are answered.
MAX_WAITING = 200
# Bodies in memory, from the time when they begin to arrive. Small ones always find room.
BODY_BYTES = 64 * 1024 * 1024
SMALL_BODY_BYTES = 64 * 1024
SHARE_OF_BODIES = 4

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
PROBLEM = (
    "HTTP/1.1 {status} {title}\r\nConnection: close\r\nRetry-After: 2\r\n"
    "Content-Type: application/problem+json\r\nContent-Length: {length}\r\n\r\n{body}"
)


@dataclass(frozen=True)
class Refusal:
    """A response that needs no request thread (RFC 9457)."""

    status: HTTPStatus
    code: str
    detail: str

    def to_bytes(self) -> bytes:
        fields = {"title": self.status.phrase, "status": self.status.value, "code": self.code, "detail": self.detail}
        body = json.dumps(fields)
        return PROBLEM.format(status=self.status.value, title=self.status.phrase, length=len(body), body=body).encode()


HEAD_TOO_LARGE = Refusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "headers_too_large",
    f"The request line and the headers can have at most {HEAD_BYTES:,} bytes.",
)
TOO_SLOW = Refusal(HTTPStatus.REQUEST_TIMEOUT, "request_timeout", "The request did not arrive in time. Send it again.")
NO_ROOM = Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "overloaded", "Too many large requests are arriving. Try again.")
TOO_MANY_WAITING = Refusal(HTTPStatus.TOO_MANY_REQUESTS, too_many_waiting().code, too_many_waiting().detail)


class ClientSocket(socket.socket):
    """A client's socket.

    unsent: bytes that the kernel has not accepted yet, in order.
    waited_seconds: how long the complete request waited for a thread.
    waits_for_share: others of the same share were being answered when it was complete. core.api.admission reads both.
    """

    waited_seconds = 0.0
    waits_for_share = False

    def __init__(self, accepted: socket.socket) -> None:
        # With its family and type, so that they are not asked of the kernel.
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self.unsent: deque[memoryview] = deque()

    def sendall(self, data: Any, flags: int = 0) -> None:
        sent = 0
        if not self.unsent:
            with suppress(BlockingIOError):
                sent = self.send(data, flags | socket.MSG_DONTWAIT)
        if sent < len(data):
            self.unsent.append(memoryview(bytes(data))[sent:])


class Connection(TConn):  # type: ignore[misc]
    """A connection and its request. share: whose request it is."""

    sock: ClientSocket
    share = ""
    complete_at = 0.0

    def __init__(self, worker: "WebWorker", accepted: socket.socket, client: Any, server: Any) -> None:
        super().__init__(worker.cfg, ClientSocket(accepted), client, server)
        self.request = ArrivingRequest(worker.max_body_bytes)
        self.network = worker.share_of(b"", client)
        # Its clients are many, and it sends complete requests.
        self.is_proxy = is_trusted_proxy(client[0]) if isinstance(client, tuple) else True
        self.began_at = time.monotonic()
        self.body_room = 0

    @property
    def ends_at(self) -> float:
        return self.began_at + ARRIVAL_SECONDS + self.request.received / LEAST_BYTES

    def complete(self, share: str) -> None:
        """Prepare the connection for a request thread."""
        self.complete_at, self.share = time.monotonic(), share
        self.parser = get_parser(self.cfg, self.request.take(), self.client)
        self.initialized = self.data_ready = True

    def close(self, graceful: bool = False) -> None:  # noqa: FBT001, FBT002 - of gunicorn
        """Close the connection, or pass it on if the client has not read the response."""
        if self.sock.fileno() < 0:
            return
        if graceful and (self.sock.unsent or self.request.is_cut):
            connection = socket.socket(fileno=self.sock.detach())
            share = self.share or self.network
            slow_clients().send_rest(connection, tuple(self.sock.unsent), share=share, is_cut=self.request.is_cut)
        else:
            # gunicorn's graceful close would wait for the client here. All that arrived has been read, so the kernel
            # sends the response before it closes.
            super().close()


class WebWorker(ThreadWorker):  # type: ignore[misc]
    """A process of the web server.

    share_of: returns the share of a request (config.web.shares).
    is_computing: the function of core.workspaces.api.throttling.
    observe: the function of core.api.latency.
    """

    tpool: FairPool
    # Set by config.gunicorn when the application is loaded.
    share_of: Callable[[bytes, Any], str]
    is_computing: Callable[..., bool]
    observe: Callable[..., None]
    max_body_bytes: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Protects nr_conns, the number of connections: the main thread and the request threads change it.
        self.counting = threading.Lock()
        # In the order in which they were accepted.
        self.arriving: dict[Connection, None] = {}
        self.networks: Counter[str] = Counter()
        self.body_bytes = 0
        self.network_body_bytes: Counter[str] = Counter()
        # Connections whose bodies wait for room.
        self.without_room: deque[Connection] = deque()

    def get_thread_pool(self) -> FairPool:
        return FairPool(self.cfg.threads, threads_of=self.threads_of)

    def threads_of(self, share: str) -> int:
        """Return how many threads may work for a share: half of them, or one if its requests compute.

        Two that compute take turns with the interpreter's lock, and with every other thread of the process.
        """
        return 1 if self.is_computing(share) else max(self.cfg.threads // 2, 1)

    def init_signals(self) -> None:
        super().init_signals()
        signal.signal(signal.SIGALRM, self.decide)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Service managers such as systemd send SIGTERM to all processes at once. This process still has to accept
        # connections then: the arbiter sends another signal when the server stops (config.web.stop).
        signal.setitimer(signal.ITIMER_REAL, DECISION_SECONDS)

    def decide(self, sig: int, frame: FrameType | None) -> None:
        """Exit, unless the whole server is about to stop."""
        if stage() != WAITING_FOR_PROXY:
            super().handle_exit(sig, frame)

    def run(self) -> None:
        self.addresses = {listener: listener.getsockname() for listener in self.sockets}
        super().run()
        slow_clients().stop(self.cfg.graceful_timeout)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Dispatch events until the timeout, not only the first ones.

        After it, run() reports to the arbiter and ends slow requests: once a second, not after each event.
        """
        ends_at = time.monotonic() + timeout
        super().wait_for_and_dispatch_events(timeout)
        while self.alive and self._accepting == (self.nr_conns < self.worker_connections):
            if waiting := self.tpool.all_waiting:
                time.sleep(min(REST_SECONDS * waiting, MAX_REST_SECONDS))
            if (left := ends_at - time.monotonic()) <= 0:
                break
            super().wait_for_and_dispatch_events(left)

    def accept(self, listener: socket.socket) -> None:
        with suppress(BlockingIOError, ConnectionAbortedError):
            for _ in range(min(MAX_ACCEPTED, self.worker_connections - self.nr_conns)):
                accepted, client = listener.accept()
                with self.counting:
                    self.nr_conns += 1
                self.receive_from(Connection(self, accepted, client, self.addresses[listener]))

    def receive_from(self, connection: Connection) -> None:
        """Begin to receive a request."""
        if not connection.is_proxy and self.networks[connection.network] >= MAX_ARRIVING // SHARE_OF_ARRIVING:
            self.drop(connection)
            return
        if len(self.arriving) >= MAX_ARRIVING:
            self.end(next(iter(self.arriving)))
        self.arriving[connection] = None
        self.networks[connection.network] += 1
        # Its first bytes have arrived (TCP_DEFER_ACCEPT), and usually all.
        self.receive(connection, connection.sock)
        if connection in self.arriving and connection not in self.without_room:
            self.wait_for_data(connection)

    def wait_for_data(self, connection: Connection) -> None:
        self.poller.register(connection.sock, EVENT_READ, partial(self.receive, connection))

    def receive(self, connection: Connection, _socket: Any) -> None:
        """Read the arrived bytes of a request."""
        request = connection.request
        try:
            data = connection.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.end(connection)
            return
        had_head = bool(request.head)
        try:
            request.feed(data)
        except HeadTooLarge:
            self.refuse(connection, HEAD_TOO_LARGE)
            return
        if request.is_complete:
            self.forget(connection)
            connection.complete(self.share_of(request.head, connection.client))
            self.enqueue_req(connection)
        elif request.head and not had_head:
            self.begin_body(connection)

    def begin_body(self, connection: Connection) -> None:
        """Reserve memory for a body, or let it wait."""
        if not self.has_room(connection):
            self.stop_waiting(connection)
            self.without_room.append(connection)
            return
        if connection.request.body_bytes > SMALL_BODY_BYTES:
            connection.began_at = time.monotonic()
            connection.body_room = connection.request.body_bytes
            self.body_bytes += connection.body_room
            self.network_body_bytes[connection.network] += connection.body_room
        if connection.request.expects_continue:
            with suppress(OSError):
                connection.sock.sendall(CONTINUE)

    def has_room(self, connection: Connection) -> bool:
        size = connection.request.body_bytes
        of_network = self.network_body_bytes[connection.network] + size
        is_fair = of_network <= BODY_BYTES // SHARE_OF_BODIES or of_network == size
        has_room = (is_fair or connection.is_proxy) and self.body_bytes + size <= BODY_BYTES
        return size <= SMALL_BODY_BYTES or has_room

    def enqueue_req(self, conn: Connection) -> None:
        """Queue a complete request."""
        if self.tpool.waiting(conn.share) >= MAX_WAITING:
            self.refuse(conn, TOO_MANY_WAITING)
            return
        conn.sock.waits_for_share = self.tpool.is_full(conn.share)
        self.tpool.submit_for(conn.share, self.answer, conn)

    def answer(self, connection: Connection) -> None:
        """Answer a request in a request thread and close its connection. Wakes the main thread only if it waits."""
        try:
            self.handle(connection)
        finally:
            with suppress(OSError):
                connection.close(graceful=True)
            with self.counting:
                self.nr_conns -= 1
            if connection.body_room or not (self.alive and self._accepting):
                self.method_queue.defer(self.release_body, connection)

    def handle_request(self, req: Any, conn: Connection) -> Any:
        # Sent before the body arrived.
        req._expected_100_continue = False  # noqa: SLF001
        conn.sock.waited_seconds = time.monotonic() - conn.complete_at
        return super().handle_request(req, conn)

    def murder_pending(self) -> None:
        """End requests that arrive too slowly, and choose the switch interval. Called once a second."""
        super().murder_pending()
        sys.setswitchinterval(QUICK_SWITCH_SECONDS if self.is_computing() else SWITCH_SECONDS)
        now = time.monotonic()
        for connection in [connection for connection in self.arriving if connection.ends_at < now]:
            self.refuse(connection, NO_ROOM if connection in self.without_room else TOO_SLOW)

    def refuse(self, connection: Connection, refusal: Refusal) -> None:
        """Answer without a request thread."""
        self.forget(connection)
        connection.request.is_cut = True
        with suppress(OSError):
            connection.sock.sendall(refusal.to_bytes())
        self.observe("turned-away", status=refusal.status, seconds=time.monotonic() - connection.began_at)
        self.drop(connection, graceful=True)

    def end(self, connection: Connection) -> None:
        """Close a connection whose request is incomplete."""
        self.forget(connection)
        self.drop(connection)

    def drop(self, connection: Connection, *, graceful: bool = False) -> None:
        self.release_body(connection)
        with self.counting:
            self.nr_conns -= 1
        connection.close(graceful)

    def forget(self, connection: Connection) -> None:
        """Stop receiving from a connection."""
        if self.arriving.pop(connection, self) is self:
            return
        self.networks[connection.network] -= 1
        if not self.networks[connection.network]:
            del self.networks[connection.network]
        self.stop_waiting(connection)
        with suppress(ValueError):
            self.without_room.remove(connection)

    def stop_waiting(self, connection: Connection) -> None:
        with suppress(KeyError, ValueError):
            self.poller.unregister(connection.sock)

    def release_body(self, connection: Connection) -> None:
        """Give the memory of a body to those that wait for it."""
        if not connection.body_room:
            return
        self.body_bytes -= connection.body_room
        self.network_body_bytes[connection.network] -= connection.body_room
        if not self.network_body_bytes[connection.network]:
            del self.network_body_bytes[connection.network]
        connection.body_room = 0
        for _ in range(len(self.without_room)):
            waiting = self.without_room.popleft()
            self.wait_for_data(waiting)
            self.begin_body(waiting)
