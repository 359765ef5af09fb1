"""What a worker process does beside Celery's own work: its timers, and a stop that loses no lease."""

from typing import Any

from celery.signals import celeryd_after_setup, worker_shutdown, worker_shutting_down

from config.checks import refuse_unsafe_start
from drain import stopping
from drain.engine import Drain
from drain.timer import start_timer
from emails.sending import emails_drain


def drains() -> list[Drain[Any, Any]]:
    return [emails_drain()]


@celeryd_after_setup.connect
def start(**_: Any) -> None:
    """Start the timers before the broker is reached, so that mail leaves while Redis is down."""
    refuse_unsafe_start()
    for drain in drains():
        start_timer(drain)


@worker_shutting_down.connect
def stop_claiming(**_: Any) -> None:
    stopping.stop()


@worker_shutdown.connect
def finish(**_: Any) -> None:
    """Wait for what is under way; what is not done by then keeps its lease and is found again."""
    stopping.stop()
    for drain in drains():
        drain.join()
