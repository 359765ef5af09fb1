"""What a worker process does beside Celery's own work: its timers, and a stop that loses no lease."""

import gc
import os
import signal
import sys
import threading
from typing import Any

from celery.signals import celeryd_after_setup, worker_shutdown, worker_shutting_down

from config.checks import refuse_unsafe_start
from config.heartbeats import start_presence
from emails.sending.sending import emails_drain, emails_transport
from lib.worker import shutdown
from lib.worker.processor import Drain
from lib.worker.timer import start_timer
from system_mail.sending import system_mail_drain
from webhooks.sending.sending import webhooks_drain

# The process id of manage.py worker, handed down to the processes that it starts.
PARENT = "POSTRIDER_WORKER_PARENT"
PARENT_EVERY_SECONDS = 1.0
# The thread that composes gives way to the one that waits for the database; by default after 5 ms, and that is
# what each of some twenty answers of the database would wait for in each turn.
SWITCH_SECONDS = 0.0002


def drains() -> list[Drain[Any, Any]]:
    return [emails_drain(), webhooks_drain(), system_mail_drain()]


@celeryd_after_setup.connect
def start(**_: Any) -> None:
    """Start the timers before the broker is reached, so that mail leaves while Redis is down."""
    refuse_unsafe_start()
    sys.setswitchinterval(SWITCH_SECONDS)
    for drain in drains():
        start_timer(drain)
    start_presence(lambda: emails_transport().trouble)
    # What is loaded by now is never garbage, and each look through it holds up the mail.
    gc.collect()
    gc.freeze()


@celeryd_after_setup.connect
def follow_parent(**_: Any) -> None:
    """End when `manage.py worker` is gone: killed with -9, it cannot say so."""
    parent = os.environ.get(PARENT)
    if parent:
        threading.Thread(target=_follow, args=[int(parent)], name="parent", daemon=True).start()


def _follow(parent: int) -> None:
    while not shutdown.wait(PARENT_EVERY_SECONDS):
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
            return


@worker_shutting_down.connect
def stop_claiming(**_: Any) -> None:
    shutdown.stop()


@worker_shutdown.connect
def finish(**_: Any) -> None:
    """Wait for what is under way; what is not done by then keeps its lease and is found again."""
    shutdown.stop()
    for drain in drains():
        drain.join()
