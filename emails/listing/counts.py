"""Exact numbers of emails, from the counters."""

from collections.abc import Collection

from counters import counters
from workspaces.models import Workspace

LIVE_AND_TEST = (False, True)


def count_by_status(workspace: Workspace, *, statuses: Collection[str], tests: Collection[bool] = LIVE_AND_TEST) -> int:
    """Return the exact number of a workspace's emails with one of the statuses, in constant time.

    tests: whether to count live emails (False), test emails (True), or both.
    """
    keys = [counters.counter_key(f"status.{status}", is_test=is_test) for status in statuses for is_test in tests]
    return counters.total(workspace.id, keys=keys)
