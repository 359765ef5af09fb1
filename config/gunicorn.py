"""How gunicorn serves: sync workers, each with a database connection that it keeps (docs/decisions/0006, 0068)."""

import gc
import os
import shutil
import tempfile
from typing import Any

from config.standby import SERVING, WAITING, ReliefWorker, leave_place, take_place

HOST = "127.0.0.1" if os.environ.get("MODE") == "embedded" else "0.0.0.0"  # noqa: S104 - a container's proxy must reach it

bind = f"{HOST}:{os.environ.get('PORT', '8000')}"
workers = SERVING + WAITING
worker_class = ReliefWorker
preload_app = True
# Room for what comes within WEB_MAX_WAIT_MS: only what a process takes can be told that there are too many.
# As much as Linux allows by itself.
backlog = 4096
timeout = 60
graceful_timeout = 30
# Slow clients are the reverse proxy's work; these stop the crudest abuse without one.
limit_request_line = 8190
limit_request_fields = 64
forwarded_allow_ips = ""
control_socket_disable = True

# Where the processes of this server write what /metrics adds up (api.latency); made before the application is loaded.
OWN_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR" not in os.environ
if OWN_DIRECTORY:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="postrider-metrics-")


def when_ready(server: Any) -> None:
    # What is loaded before the fork is never garbage: looking through it was a quarter of accepting a batch.
    gc.collect()
    gc.freeze()


def pre_fork(server: Any, worker: Any) -> None:
    worker.place = take_place({other.place for other in server.WORKERS.values()})


def child_exit(server: Any, worker: Any) -> None:
    leave_place(worker.place)


def on_exit(server: Any) -> None:
    if OWN_DIRECTORY:
        shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
