"""Worker process setup around Celery: timers, heartbeat, and a shutdown that lets jobs in flight finish."""

import gc
import os
import signal
import sys
import threading
from typing import Any

from celery.signals import celeryd_after_setup, worker_shutdown, worker_shutting_down

from config.checks import refuse_unsafe_start
from config.heartbeats import start_heartbeat
from emails.sending.sending import emails_processor, emails_transport
from lib.worker import shutdown
from lib.worker.processor import QueueProcessor
from lib.worker.timer import start_timer
from system_mail.sending import system_mail_processor
from webhooks.sending.sending import webhooks_processor

# The process id of manage.py worker, passed to the processes that it starts.
PARENT = "POSTRIDER_WORKER_PARENT"
PARENT_EVERY_SECONDS = 1.0
# How soon the thread that composes messages yields to the thread that waits for the database. With the default of 5 ms,
# each of about twenty database replies per batch would wait that long.
SWITCH_SECONDS = 0.0002


def queue_processors() -> list[QueueProcessor[Any, Any]]:
    return [emails_processor(), webhooks_processor(), system_mail_processor()]


@celeryd_after_setup.connect
def start(**_: Any) -> None:
    """Start the timers before the broker connects, so that emails are sent while Redis is down."""
    refuse_unsafe_start()
    sys.setswitchinterval(SWITCH_SECONDS)
    for processor in queue_processors():
        start_timer(processor)
    start_heartbeat(lambda: emails_transport().trouble)
    # Objects loaded so far are permanent, and each garbage collection over them delays sending.
    gc.collect()
    gc.freeze()


@celeryd_after_setup.connect
def follow_parent(**_: Any) -> None:
    """Stop when `manage.py worker` is gone: after SIGKILL it cannot notify its processes."""
    parent = os.environ.get(PARENT)
    if parent:
        threading.Thread(target=_follow, args=[int(parent)], name="parent", daemon=True).start()


def _follow(parent: int) -> None:
    while not shutdown.wait_for_stop(PARENT_EVERY_SECONDS):
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
            return


@worker_shutting_down.connect
def stop_claiming(**_: Any) -> None:
    shutdown.stop()


@worker_shutdown.connect
def finish(**_: Any) -> None:
    """Wait for jobs in flight; unfinished jobs are claimed again after their lease expires."""
    shutdown.stop()
    for processor in queue_processors():
        processor.join()
