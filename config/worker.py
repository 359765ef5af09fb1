"""Worker process setup around Celery: timers, heartbeat, and a shutdown that lets jobs in flight finish."""

import gc
import importlib
import logging
import multiprocessing
import os
import socket
import sys
import threading
from functools import partial
from typing import Any

from celery.signals import celeryd_after_setup, task_prerun, worker_ready, worker_shutdown, worker_shutting_down
from django.conf import settings
from django.db import close_old_connections, connection

from config.beat import run_beat
from config.celery import app
from config.checks import refuse_unsafe_start, refuse_unusable_sources
from config.heartbeats import start_heartbeat
from config.postgres.preparation import prepare_connections
from config.start.routes import refuse_unknown_routes
from console.system_mail.sending import system_mail_processor
from core.lib.forking import Program, return_large_blocks
from core.lib.network.public_suffixes import public_suffixes
from core.lib.worker import shutdown
from core.lib.worker.event_loop import close_network
from core.lib.worker.processor import QueueProcessor
from core.lib.worker.timer import start_timer
from domains.check_queue.processor import domain_checks_processor
from emails.sending.emails_work import emails_processor, emails_transport, emails_work
from emails.sending.transport_status import send_reports
from emails.sending.transports import find_router
from events.sequencer import start_sequencer
from receiving.received_work import received_processor
from suppressions.notices import start_listening
from webhooks.publishing import publish_events
from webhooks.sending.webhooks_work import webhooks_processor

log = logging.getLogger("postrider.processes")

# The threads of a process share its sessions and its queue processors; two threads stay free for scheduled tasks.
OPTIONS = {"pool_cls": "threads", "concurrency": 4, "without_gossip": True, "without_mingle": True, "quiet": True}
# Modules that Celery loads when a worker starts.
PRELOADED = (
    "billiard.dummy", "billiard.pool", "celery.app.amqp", "celery.app.control", "celery.app.events", "celery.app.log",
    "celery.apps.worker", "celery.concurrency.thread", "celery.events.receiver", "celery.worker.autoscale",
    "celery.worker.components", "celery.worker.consumer", "celery.worker.consumer.delayed_delivery",
    "celery.worker.strategy", "kombu.transport.redis",
)  # fmt: skip
# How soon the thread that composes messages yields to the thread that waits for the database. With the default of 5 ms,
# each of about twenty database replies per batch would wait that long.
SWITCH_SECONDS = 0.0002


def worker_programs(*, with_beat: bool = False) -> dict[str, Program]:
    """Load the code that worker processes share; return the programs of WORKER_CONCURRENCY processes by name."""
    refuse_start_of_workers()
    count = settings.WORKER_CONCURRENCY or multiprocessing.cpu_count()
    # manage.py has run the system checks; in each process again, they would copy shared memory.
    os.environ["CELERY_SKIP_CHECKS"] = "1"
    for name in PRELOADED:
        importlib.import_module(name)
    app.loader.init_worker()
    app.finalize()
    prepare_connections()
    public_suffixes()
    return {
        f"worker{number}": partial(run_worker, number, with_beat=with_beat and number == 0) for number in range(count)
    }


def refuse_start_of_workers() -> None:
    """Exit with a message if workers may not start; a forked process that exited would be started again for ever."""
    refuse_unsafe_start()
    refuse_unusable_sources()
    try:
        refuse_unknown_routes()
    finally:
        # Forked processes must not share it.
        connection.close()


def run_worker(number: int, *, with_beat: bool) -> None:
    """Run a Celery worker, and beat in a thread of it, until a signal stops the process."""
    if with_beat:
        threading.Thread(target=run_beat, name="beat", daemon=True).start()
    worker = app.Worker(hostname=f"worker{number}@{socket.gethostname()}", **OPTIONS)
    # Celery would replace the name that this process has got from core.lib.forking.
    worker.set_process_status = lambda info: None  # type: ignore[method-assign]  # noqa: ARG005
    worker.start()
    sys.exit(worker.exitcode)


def queue_processors() -> list[QueueProcessor[Any, Any]]:
    return [
        emails_processor(),
        webhooks_processor(),
        system_mail_processor(),
        domain_checks_processor(),
        received_processor(),
    ]


@celeryd_after_setup.connect
def start(**_: Any) -> None:
    """Start the timers before the broker connects, so that emails are sent while Redis is down."""
    # Before the threads: messages with attachments are large.
    return_large_blocks()
    sys.setswitchinterval(SWITCH_SECONDS)
    for processor in queue_processors():
        start_timer(processor)
    start_sequencer(publish_events)
    start_listening(emails_work().stop_suppressed)
    # Objects loaded so far are permanent, and each garbage collection over them delays sending.
    gc.collect()
    gc.freeze()


@worker_ready.connect
def announce(**_: Any) -> None:
    """Send heartbeats once wake-ups arrive, so that `/readyz` finds a worker that sends an email at once."""
    start_heartbeat(report_transports)
    log.info("worker is ready", extra={"data": {"transport": settings.DELIVERY_TRANSPORT}})


def report_transports() -> str | None:
    """Publish the states of this process's transports; return why no email can be sent, if so."""
    transport = emails_transport()
    if router := find_router(transport):
        send_reports(router.reports())
    return transport.trouble


@task_prerun.connect
def check_connection(**_: Any) -> None:
    """Replace a database connection that broke during an earlier task."""
    close_old_connections()


@worker_shutting_down.connect
def stop_claiming(**_: Any) -> None:
    shutdown.stop()


@worker_shutdown.connect
def finish(**_: Any) -> None:
    """Wait for jobs in flight; unfinished jobs are claimed again after their lease expires."""
    shutdown.stop()
    for processor in queue_processors():
        processor.join()
    close_network()
