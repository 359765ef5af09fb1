"""gunicorn settings: sync workers, each with a persistent database connection (docs/decisions/0006, 0068)."""

import gc
import os
import shutil
import tempfile
from typing import Any

from config.standby import SERVING, STANDBY, StandbyWorker, claim_slot, release_slot

HOST = "127.0.0.1" if os.environ.get("MODE") == "embedded" else "0.0.0.0"  # noqa: S104 - reachable for the proxy of a container

bind = f"{HOST}:{os.environ.get('PORT', '8000')}"
workers = SERVING + STANDBY
worker_class = StandbyWorker
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
    # Objects loaded before the fork are permanent: collecting them took a quarter of the time to accept a batch.
    gc.collect()
    gc.freeze()


def pre_fork(server: Any, worker: Any) -> None:
    worker.slot = claim_slot({other.slot for other in server.WORKERS.values()})


def child_exit(server: Any, worker: Any) -> None:
    release_slot(worker.slot)


def on_exit(server: Any) -> None:
    if OWN_DIRECTORY:
        shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
