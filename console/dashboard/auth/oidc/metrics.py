"""Counter of sign-ins with the identity provider for `/metrics`."""

from collections.abc import Iterator

from core.counters import counters
from core.counters.process_counts import Labels, read_process_counts

KIND = "provider-sign-in"
RESULTS = ("ok", "refused", "unavailable")


def count_sign_in(result: str) -> None:
    """Count a sign-in. result: ok, refused (by either side), or unavailable (the provider)."""
    counters.add([(counters.CounterKey(counters.SERVICE, counters.ALL_TIME, f"{KIND}.{result}"), 1)])


def read_sign_in_counts() -> Iterator[tuple[Labels, int]]:
    """Yield the all-time number of sign-ins by result."""
    return read_process_counts(KIND, known=[(result,) for result in RESULTS])
