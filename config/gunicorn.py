"""gunicorn settings: one process per core, and a few threads in each for requests that wait (docs/decisions/0075)."""

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
from types import FrameType
from typing import Any

from gunicorn import util
from gunicorn.workers.gthread import TConn, ThreadWorker

from config.web_stop import WAITING_FOR_PROXY, stage, stop_gracefully
from lib.forking import return_large_blocks

HOST = "127.0.0.1" if os.environ.get("MODE") == "embedded" else "0.0.0.0"  # noqa: S104 - reachable for the proxy of a container
# A client that sends or reads nothing for this long is disconnected; the reverse proxy handles slow clients.
STALLED_SECONDS = 20
# A process that gets SIGTERM waits this long for the decision of its arbiter, which may get the signal as well.
DECISION_SECONDS = 0.2

log = logging.getLogger("postrider.processes")


class WebWorker(ThreadWorker):  # type: ignore[misc]
    """A threaded worker whose main thread never waits for a client, so that it always accepts connections."""

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

    def handle_request(self, req: Any, conn: TConn) -> Any:
        is_kept = super().handle_request(req, conn)
        # Only an unread rest of the body could make the kernel discard the response, so nothing else is waited for.
        if getattr(req.body.reader, "length", None) == 0:
            conn.sock.shutdown(socket.SHUT_RD)
        return is_kept

    def handle(self, conn: TConn) -> Any:
        is_kept = super().handle(conn)
        if is_kept is False:
            # The main thread closes the connection afterwards, and would wait up to two seconds for the client.
            with suppress(OSError):
                util.close_graceful(conn.sock.dup())
                conn.sock.shutdown(socket.SHUT_RD)
        return is_kept


bind = f"{HOST}:{os.environ.get('PORT', '8000')}"
workers = int(os.environ.get("WEB_CONCURRENCY") or 0) or multiprocessing.cpu_count()
threads = 4
worker_class = WebWorker
# Connections beyond these wait in the kernel's queue, for whichever process is free first.
worker_connections = threads
keepalive = 0
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


def post_worker_init(worker: Any) -> None:
    # The application is loaded by now.
    from api import admission  # noqa: PLC0415
    from config.doctor.app_keys import warn_of_missing_keys  # noqa: PLC0415

    warn_of_missing_keys()
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
