"""Domain verification on request: make the domain due, wake a worker, and wait for the recorded result."""

import threading
import time

from domains.check_queue.claims import request_check
from domains.models import Domain
from domains.plan_limit import refuse_verification

MAX_WAIT_SECONDS = 5.0
POLL_SECONDS = 0.05
# Half of the threads of a web process (config/gunicorn.py), and half of those of a workspace.
MAX_WAITING = 2

_lock = threading.Lock()
# The workspaces of the requests that wait.
_waiting: set[str] = set()


def verify_domain(domain: Domain) -> None:
    """Have a worker check a domain now; return when the result is recorded, after five seconds at the latest.

    Returns at once if a requested check of the domain is already running, or if another request of the workspace or
    MAX_WAITING of this process wait for theirs. Raises TooManyConcurrentRequests if too many domains of the workspace
    are being checked, and PlanLimitReached if the plan allows no more verified domains.
    """
    refuse_verification(domain)
    number = request_check(domain)
    if number is None or not _begin_to_wait(domain.workspace_id):
        return
    try:
        _wait_for_check(domain, number=number)
    finally:
        _waiting.discard(domain.workspace_id)


def _begin_to_wait(workspace_id: str) -> bool:
    """Take the place of a workspace among the requests that wait; return whether there was one."""
    with _lock:
        if workspace_id in _waiting or len(_waiting) >= MAX_WAITING:
            return False
        _waiting.add(workspace_id)
        return True


def _wait_for_check(domain: Domain, *, number: int) -> None:
    """Wait until the check `number` or a newer one is recorded or the domain is deleted; holds no transaction."""
    recorded = Domain.objects.filter(id=domain.id).values_list("checks_recorded", flat=True)
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while (latest := recorded.first()) is not None and latest < number and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
