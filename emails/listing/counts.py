"""Exact numbers of emails, from the counters."""

from collections.abc import Collection, Iterator

from core.counters import counters
from core.workspaces.models import Workspace
from emails.states import EmailStatus

LIVE_AND_TEST = (False, True)
# The filters of which the counters have the number of emails.
COUNTED = frozenset({"status", "test"})


def count_by_status(workspace: Workspace, *, statuses: Collection[str], tests: Collection[bool] = LIVE_AND_TEST) -> int:
    """Return the exact number of a workspace's emails with one of the statuses, in constant time.

    tests: whether to count live emails (False), test emails (True), or both.
    """
    keys = [key for status in statuses for key in _keys(status, tests)]
    return counters.total(workspace.id, keys=keys)


def counts_by_status(workspace_id: str, *, tests: Collection[bool] = LIVE_AND_TEST) -> dict[str, int]:
    """Return the exact number of a workspace's emails with each status, as count_by_status does, in one query."""
    keys = {key: status for status in EmailStatus.values for key in _keys(status, tests)}
    counts = dict.fromkeys(EmailStatus.values, 0)
    for key, count in counters.totals(workspace_id, keys=keys).items():
        counts[keys[key]] += count
    return counts


def _keys(status: str, tests: Collection[bool]) -> Iterator[str]:
    """Yield the keys of the counters of a status; lists show diverted emails among the live ones."""
    for is_test in tests:
        yield counters.counter_key(f"status.{status}", is_test=is_test)
    if False in tests:
        yield counters.counter_key(f"status.{status}", is_test=False, is_diverted=True)
