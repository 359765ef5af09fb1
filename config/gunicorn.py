"""gunicorn settings: one process per core, and a few threads in each (docs/decisions/0075)."""

import gc
import logging
import multiprocessing
import os
import resource
import shutil
import socket
import tempfile
from functools import partial
from typing import Any

from config.web.stop import stop_gracefully
from core.lib.forking import name_process, return_large_blocks

HOST = "127.0.0.1" if os.environ.get("MODE") == "embedded" else "0.0.0.0"  # noqa: S104 - reachable for the proxy of a container
# An accepted connection has sent its first bytes, if it does so within this time.
DEFER_SECONDS = 20
log = logging.getLogger("postrider.processes")


bind = f"{HOST}:{os.environ.get('PORT', '8000')}"
workers = int(os.environ.get("WEB_CONCURRENCY") or 0) or multiprocessing.cpu_count()
threads = 4
worker_class = "config.web.worker.WebWorker"
# Connections of a process, most of which wait for a thread or are answered by the thread of slow clients.
worker_connections = 1500
# A proxy that repeats no POST may otherwise use a connection while this server closes it.
keepalive = 0
# It would block a thread; the files are small.
sendfile = False
preload_app = True
# Large enough for the connections of WEB_MAX_WAIT_MS: only accepted connections can get a 503. Linux' default maximum.
backlog = 4096
timeout = 60
graceful_timeout = 30
limit_request_line = 8190
limit_request_fields = 64
forwarded_allow_ips = ""
control_socket_disable = True

# The directory for the latency files of this server's processes (core.api.latency); created before the application
# loads.
OWN_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR" not in os.environ
if OWN_DIRECTORY:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="postrider-metrics-")


def when_ready(server: Any) -> None:
    # The application is loaded by now. The processes use config.web.shares, too.
    import config.web.shares  # noqa: F401, PLC0415
    from config.start.warnings import warn_at_start  # noqa: PLC0415

    raise_file_limit()
    return_large_blocks()
    server.handle_term = partial(stop_gracefully, server)
    for listener in server.LISTENERS:
        defer_accept(listener.sock)
    # Objects loaded before the fork are permanent: collecting them took a quarter of the time to accept a batch.
    gc.collect()
    gc.freeze()
    addresses = [str(listener) for listener in server.LISTENERS]
    log.info("web is ready", extra={"data": {"addresses": addresses, "processes": server.num_workers}})
    warn_at_start()


def pre_fork(server: Any, worker: Any) -> None:
    # gunicorn has given its own name to this process by now.
    name_process("web supervisor")


def raise_file_limit() -> None:
    """Let a process have as many open files as it may have connections; service managers start it with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * worker_connections
    if soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def post_worker_init(worker: Any) -> None:
    name_process("web")
    from config.web.shares import share_of  # noqa: PLC0415
    from core.api import latency  # noqa: PLC0415 - as in when_ready
    from core.api.parser import MAX_BODY_BYTES  # noqa: PLC0415
    from core.workspaces.api.throttling import is_computing  # noqa: PLC0415
    from interfaces.tracking.hosts import tracking_hosts  # noqa: PLC0415

    latency.begin_at_zero()
    worker.share_of, worker.is_computing = share_of, is_computing
    worker.observe, worker.max_body_bytes = latency.observe, MAX_BODY_BYTES
    tracking_hosts.keep_current()


def defer_accept(listener: socket.socket) -> None:
    """Accept a connection when its first bytes arrive."""
    if hasattr(socket, "TCP_DEFER_ACCEPT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, DEFER_SECONDS)


def on_exit(server: Any) -> None:
    if OWN_DIRECTORY:
        shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
