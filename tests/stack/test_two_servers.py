"""Two servers with one database under load; one of them loses its power."""

import itertools
import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from tests.stack.scenario import Scenario, Tenant, running_scenario
from tests.stack.stack import Stack, free_port

pytestmark = pytest.mark.stack

CLIENTS = 8
# The figures for docs/scaling.md need more.
EMAILS = 300
PROCESSES = ("web", "worker")


@dataclass
class BalancedScenario(Scenario):
    """Sends each request to the next server that accepts a connection, as a load balancer does."""

    servers: tuple[Stack, ...] = ()
    turns: "itertools.count[int]" = field(default_factory=itertools.count)

    def _ask(self, tenant, method, path, body, key):
        turn = next(self.turns)
        for step in range(len(self.servers)):
            server = self.servers[(turn + step) % len(self.servers)]
            with suppress(ConnectionRefusedError):
                return Scenario._ask(replace(self, stack=server), tenant, method, path, body, key)
        raise ConnectionRefusedError


@pytest.fixture
def scenario(tmp_path):
    """Two servers, each with its own environment, port, name in greetings, and processes."""
    with running_scenario(tmp_path, EHLO_NAME="one.example") as first:
        environment = {**first.stack.environment, "PORT": str(free_port()), "EHLO_NAME": "two.example"}
        (tmp_path / "two").mkdir()
        second = Stack(tmp_path / "two", environment, first.stack.redis, key=first.stack.key)
        try:
            second.start(*PROCESSES)
            yield BalancedScenario(**vars(first), servers=(first.stack, second))
        finally:
            second.stop([*second.processes])


def lose_power(server: Stack) -> None:
    for name in PROCESSES:
        server.kill(name)


def test_nothing_is_lost_when_one_of_two_servers_dies_under_load(scenario, tmp_path):
    first, _ = scenario.servers
    answered: list[float] = []

    def send(tenant: Tenant) -> None:
        assert scenario.send(tenant, scenario.address())
        answered.append(time.monotonic())
        if len(answered) == EMAILS // 2:
            lose_power(first)

    started = time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(send, itertools.islice(itertools.cycle(scenario.tenants), EMAILS)))
    scenario.wait_until_idle()
    assert len(scenario.ledger.accepted) == EMAILS
    assert scenario.find_violations() == []
    killed = answered[EMAILS // 2 - 1]
    figures = {
        "emails per second with two servers": EMAILS / 2 / (killed - started),
        "emails per second with one server": EMAILS / 2 / (answered[-1] - killed),
        "longest pause in seconds": max(later - before for before, later in itertools.pairwise(sorted(answered))),
        "messages sent twice": len(scenario.ledger.messages) - EMAILS,
        "seconds from the loss to the last delivery": scenario.ledger.messages[-1].at
        - time.time()
        + time.monotonic()
        - killed,
    }
    (tmp_path / "figures.json").write_text(json.dumps(figures, indent=1))
