"""Faults of a chaos run in which receivers slow, suspend and recover: theirs, and those of the workers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.audit.ledger import Ledger
from tests.chaos.chaos import FaultInjector
from tests.chaos.limiting_receivers import DISTRUSTS, SLOWS, WINDOW_SECONDS, WORKS, LimitingReceiver

SLOW_RATES = (30.0, 60.0, 300.0)
HIDDEN_CONNECTIONS = (1, 3, None)
# Seconds of messages that may come at once, and those of a lease of connections.
BURST_SECONDS, PAIR_LEASE_SECONDS = 1.5, 10.0
# Messages in flight in two workers that are lost, which are sent again without waiting for the rate.
IN_FLIGHT = 20


@dataclass
class PaceFaultInjector(FaultInjector):
    """Injects faults into workers, the database and Redis, and changes the limits of receivers."""

    receivers: Sequence[LimitingReceiver] = ()

    def faults(self) -> list[Callable[[], None]]:
        faults = [
            self.kill_worker, self.kill_worker, self.kill_worker, self.end_worker, self.freeze_worker, self.kill_beat,
            self.flush_redis, self.stop_redis, self.freeze_redis, self.terminate_connections, self.restart_database,
        ]  # fmt: skip
        faults += [self.slow_receiver, self.recover_receiver] * 3
        return [*faults, self.distrust, self.release_receiver, self.limit_connections]

    def slow_receiver(self) -> None:
        receiver = self._hidden()
        receiver.slow_rate = self.random.choice(SLOW_RATES)
        receiver.mode = SLOWS

    def recover_receiver(self) -> None:
        self._hidden().mode = WORKS

    def distrust(self) -> None:
        """Let a receiver answer as one that wants nothing for hours."""
        self._hidden().mode = DISTRUSTS

    def limit_connections(self) -> None:
        self._hidden().connections = self.random.choice(HIDDEN_CONNECTIONS)

    def release_receiver(self) -> None:
        self._release(self._hidden())

    def recover_all(self) -> None:
        """End all limits but those that are known."""
        for receiver in self.receivers:
            receiver.mode = WORKS
            if not receiver.is_known:
                receiver.connections = None
                self._release(receiver)

    def find_violations(self) -> list[str]:
        """Return a message for each known limit that was exceeded by more than what lost workers had."""
        found = []
        for one in self.receivers:
            if one.is_known and one.connections and one.most_open > 2 * one.connections:
                found.append(f"{one.domain} had {one.most_open} connections of {one.connections}")
            if one.is_known and one.per_minute:
                seconds = WINDOW_SECONDS + BURST_SECONDS + PAIR_LEASE_SECONDS
                allowed = one.per_minute / 60 * seconds + IN_FLIGHT
                if one.most_attempts() > allowed:
                    found.append(f"{one.domain} had {one.most_attempts()} messages in {WINDOW_SECONDS} s")
        return found

    def _hidden(self) -> LimitingReceiver:
        return self.random.choice([one for one in self.receivers if not one.is_known])

    def _release(self, receiver: LimitingReceiver) -> None:
        if self.scenario.stack.query("SELECT 1 FROM emails_receiverpace WHERE receiver = %s", receiver.domain):
            self.scenario.stack.manage("receivers", "release", receiver.domain)


def make_receivers(ledger: Ledger) -> list[LimitingReceiver]:
    """Return two receivers with known limits, and two whose limits must be learnt."""
    return [
        LimitingReceiver("crowded.example", "127.0.0.41", ledger, connections=3, is_known=True),
        LimitingReceiver("rated.example", "127.0.0.42", ledger, per_minute=600, is_known=True),
        LimitingReceiver("first.example", "127.0.0.43", ledger),
        LimitingReceiver("second.example", "127.0.0.44", ledger),
    ]
