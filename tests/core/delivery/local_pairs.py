"""Pairs of sources and receivers without a database, for tests of transports."""

from collections.abc import Sequence

from core.delivery.pacing.pairs import Pair, PairGrant, PairKey, PairReport
from core.delivery.pacing.shares import PaceShares
from core.delivery.transports.circuit_breaker import Clock


class LocalPairs:
    """The pairs of several processes. reports: all of them."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.pairs: dict[PairKey, Pair] = {}
        self.reports: list[PairReport] = []

    def shares(self, process: str = "one") -> PaceShares:
        async def exchange(reports: Sequence[PairReport]) -> list[PairGrant]:
            return [self._exchange(report, process) for report in reports]

        return PaceShares(exchange, clock=self.clock)

    def _exchange(self, report: PairReport, process: str) -> PairGrant:
        self.reports.append(report)
        pair = self.pairs.get(report.key, Pair())
        number = 1 + list({**self.pairs, report.key: pair}).index(report.key)
        self.pairs[report.key], grant = pair.exchange(report, process=process, number=number, now=self.clock())
        return grant
