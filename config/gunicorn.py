"""gunicorn settings: one process per core, and a few threads in each (docs/decisions/0075)."""

import gc
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import struct
import tempfile
import time
from contextlib import suppress
from functools import partial
from itertools import cycle, islice
from selectors import EVENT_READ, DefaultSelector
from threading import Lock, Thread
from types import FrameType
from typing import Any

from gunicorn.workers.sync import SyncWorker

from config.web_stop import WAITING_FOR_PROXY, stage, stop_gracefully
from lib.forking import name_process, return_large_blocks

HOST = "127.0.0.1" if os.environ.get("MODE") == "embedded" else "0.0.0.0"  # noqa: S104 - reachable for the proxy of a container
# A client that sends or reads nothing for this long is disconnected; the reverse proxy handles slow clients.
STALLED_SECONDS = 20
# A process that gets SIGTERM waits this long for the decision of its arbiter, which may get the signal as well.
DECISION_SECONDS = 0.2
# A process reports to its arbiter this often.
NOTIFY_SECONDS = 1.0
STOP_POLL_SECONDS = 0.02
MAX_READ = 65536

log = logging.getLogger("postrider.processes")


class WebWorker(SyncWorker):  # type: ignore[misc]
    """A process whose threads each accept a connection, answer its request and close it, one after another."""

    alive: bool

    def init_signals(self) -> None:
        super().init_signals()
        signal.signal(signal.SIGALRM, self.decide)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Service managers such as systemd send SIGTERM to all processes at once. This process still has to accept
        # connections then: the arbiter sends another signal when the server stops (config.web_stop).
        signal.setitimer(signal.ITIMER_REAL, DECISION_SECONDS)

    def decide(self, sig: int, frame: FrameType | None) -> None:
        """Exit, unless the whole server is about to stop."""
        if stage() != WAITING_FOR_PROXY:
            super().handle_exit(sig, frame)

    def run(self) -> None:
        self.turn, self.events, self.listeners = Lock(), DefaultSelector(), cycle(self.sockets)
        # The main thread waits for signals only.
        self.wait_fds = [self.PIPE[0]]
        stopped, stop = os.pipe()
        for listener in self.sockets:
            listener.setblocking(False)
        for source in (*self.sockets, stopped):
            self.events.register(source, EVENT_READ)
        threads = [Thread(target=self.serve, daemon=True) for _ in range(self.cfg.threads)]
        for thread in threads:
            thread.start()
        self.supervise(threads)
        os.close(stop)
        deadline = time.monotonic() + self.cfg.graceful_timeout
        while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
            self.notify()
            time.sleep(STOP_POLL_SECONDS)

    def supervise(self, threads: list[Thread]) -> None:
        """Return when this process has to stop: after a signal, without its arbiter, or when a thread has failed."""
        while self.alive and self.is_parent_alive() and all(thread.is_alive() for thread in threads):
            # Reports to the arbiter. A signal ends the wait.
            self.wait(NOTIFY_SECONDS)
        self.alive = False

    def serve(self) -> None:
        while connection := self.accept_next():
            self.handle(*connection)

    def accept_next(self) -> tuple[Any, socket.socket, Any] | None:
        """Return the next connection with its listener and address, or None when the process stops."""
        # The other threads wait for this one, so that a connection wakes one of them.
        with self.turn:
            while self.alive:
                for listener in islice(self.listeners, len(self.sockets)):
                    with suppress(BlockingIOError, ConnectionAbortedError):
                        return listener, *listener.accept()
                self.events.select()
        return None

    def handle_request(self, listener: Any, req: Any, client: socket.socket, addr: Any) -> None:
        super().handle_request(listener, req, client, addr)
        # Bytes that nobody has read would make the kernel discard the response. The rest of a body is waited for.
        if getattr(req.body.reader, "length", None) == 0:
            with suppress(OSError):
                client.recv(MAX_READ, socket.MSG_DONTWAIT)
            client.close()


bind = f"{HOST}:{os.environ.get('PORT', '8000')}"
workers = int(os.environ.get("WEB_CONCURRENCY") or 0) or multiprocessing.cpu_count()
threads = 4
worker_class = WebWorker
preload_app = True
# Large enough for the connections of WEB_MAX_WAIT_MS: only accepted connections can get a 503. Linux' default maximum.
backlog = 4096
timeout = 60
graceful_timeout = 30
# The reverse proxy handles slow clients; these limits stop the crudest abuse without one.
limit_request_line = 8190
limit_request_fields = 64
forwarded_allow_ips = ""
control_socket_disable = True

# The directory for the latency files of this server's processes (api.latency); created before the application loads.
OWN_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR" not in os.environ
if OWN_DIRECTORY:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="postrider-metrics-")


def when_ready(server: Any) -> None:
    return_large_blocks()
    server.handle_term = partial(stop_gracefully, server)
    for listener in server.LISTENERS:
        limit_stalls(listener.sock)
    # Objects loaded before the fork are permanent: collecting them took a quarter of the time to accept a batch.
    gc.collect()
    gc.freeze()
    log.info("web is ready", extra={"data": {"address": bind, "processes": workers}})
    # The application is loaded by now.
    from doctor.app_keys import warn_of_missing_keys  # noqa: PLC0415

    warn_of_missing_keys()


def pre_fork(server: Any, worker: Any) -> None:
    # gunicorn has given its own name to this process by now.
    name_process("web supervisor")


def post_worker_init(worker: Any) -> None:
    name_process("web")
    from api import admission  # noqa: PLC0415 - as in when_ready

    admission.STARTED = time.monotonic()


def limit_stalls(listener: socket.socket) -> None:
    """Accept a connection when its first bytes arrive, and end its reads and writes after STALLED_SECONDS."""
    if hasattr(socket, "TCP_DEFER_ACCEPT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, STALLED_SECONDS)
    # Accepted connections inherit these.
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        listener.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", STALLED_SECONDS, 0))


def on_exit(server: Any) -> None:
    if OWN_DIRECTORY:
        shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
