"""Domain verification on request: make the domain due, wake a worker, and wait for the recorded result."""

import threading
import time

from domains.check_claims import request_check
from domains.models import Domain

MAX_WAIT_SECONDS = 5.0
POLL_SECONDS = 0.05
# Half of the threads of a web process (config/gunicorn.py); the others serve other workspaces.
MAX_WAITING = 2

_waiting_places = threading.BoundedSemaphore(MAX_WAITING)


def verify_domain(domain: Domain) -> None:
    """Have a worker check a domain now; return when the result is recorded, after five seconds at the latest.

    Returns at once if a requested check of the domain is already running, or if MAX_WAITING requests of this process
    wait for theirs. Raises RateLimitExceeded if too many domains of the workspace are being checked.
    """
    number = request_check(domain)
    if number is None or not _waiting_places.acquire(blocking=False):
        return
    try:
        _wait_for_check(domain, number=number)
    finally:
        _waiting_places.release()


def _wait_for_check(domain: Domain, *, number: int) -> None:
    """Wait until the check `number` or a newer one is recorded or the domain is deleted; holds no transaction."""
    recorded = Domain.objects.filter(id=domain.id).values_list("checks_recorded", flat=True)
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while (latest := recorded.first()) is not None and latest < number and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
