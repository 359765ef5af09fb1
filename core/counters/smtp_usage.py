"""Use of what the sessions of an SMTP server share, for `/metrics` of web (docs/decisions/0170).

Sessions and bytes are counted in seconds of use: the rate of such a count is the average number in use, of all
processes and machines, and a process that ends leaves nothing behind.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator

from core.counters.process_counts import SAVE_SECONDS, Labels, ProcessCounts, RunStep, read_process_counts
from core.lib.mail.smtp_limiter import ConnectionLimiter

KIND = "smtp"
SESSIONS = "session_seconds"
BYTES = "byte_seconds"
REFUSED = "refused"
SERVERS = ("inbound", "submission")
SHARES = ("address", "all", "memory", "owner")


class SmtpUsage:
    """The use of one server process.

    server: submission or inbound.
    read_bytes: returns the bytes of messages that are being received.
    """

    def __init__(self, server: str, limiter: ConnectionLimiter, *, read_bytes: Callable[[], int] = lambda: 0) -> None:
        self._server = server
        self._limiter = limiter
        self._read_bytes = read_bytes
        self._counts = ProcessCounts(KIND)
        self._refused: Counter[str] = Counter()

    async def keep_saving(self, run: RunStep) -> None:
        """Measure and save from time to time, until the task is cancelled."""
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            self.measure(seconds=SAVE_SECONDS)
            await self._counts.save(run)

    def measure(self, *, seconds: float) -> None:
        """Count the present use for the seconds since the last measurement, and the refusals since."""
        self._counts.count(SESSIONS, self._server, by=round(len(self._limiter) * seconds))
        self._counts.count(BYTES, self._server, by=round(self._read_bytes() * seconds))
        for share, count in (self._limiter.refused - self._refused).items():
            self._counts.count(REFUSED, self._server, share, by=count)
        self._refused = self._limiter.refused.copy()


def read_usage(measure: str) -> Iterator[tuple[Labels, int]]:
    """Yield the all-time counts of a measure by server, and by share if it has them."""
    known: list[Labels] = [(name, server) for name in (SESSIONS, BYTES) for server in SERVERS]
    known += [(REFUSED, server, share) for server in SERVERS for share in SHARES]
    for (name, *labels), count in read_process_counts(KIND, known=known):
        if name == measure:
            yield tuple(labels), count
