"""Named transports with real processes: a revoked login, and a silent relay."""

import json
import time

import pytest

from tests.stack.limits import limited
from tests.stack.scenario import Scenario, running_scenario
from tests.stack.stack import wait_for

pytestmark = [pytest.mark.stack]


@pytest.fixture
def scenario(tmp_path):
    with running_scenario(tmp_path, has_two_transports=True) as scenario:
        yield scenario


def sent(scenario: Scenario):
    return [message.transport for message in scenario.ledger.messages if "@example.com" in message.recipient]


def send(scenario: Scenario, count=1):
    for _ in range(count):
        scenario.send(scenario.tenants[0], scenario.address())


def revoke_login(scenario, own):
    """Send mail by the first transport, then let its relay demand a login."""
    send(scenario, 3)
    wait_for(lambda: len(sent(scenario)) == 3, seconds=30, what="mail by the first transport")
    assert sent(scenario) == ["own"] * 3
    own.set_mode("demands_login")


@limited(2)
def test_a_revoked_login_moves_the_mail_within_two_seconds(scenario, limit):
    own, _ = scenario.relays
    revoke_login(scenario, own)
    started = time.monotonic()
    send(scenario)
    wait_for(lambda: len(sent(scenario)) == 4, seconds=60, what="mail by the next transport")
    assert sent(scenario)[-1] == "relay"
    assert time.monotonic() - started < limit
    send(scenario, 5)
    wait_for(lambda: len(sent(scenario)) == 9, seconds=30, what="mail by the next transport")
    assert set(sent(scenario)[3:]) == {"relay"}
    wait_for(lambda: _state(scenario, "own") == "paused", seconds=30, what="a report of the worker")
    scenario.wait_until_idle(seconds=60)
    assert scenario.find_violations() == []


def _state(scenario, name):
    page = scenario.stack.manage("shell", "-c", STATES).strip().splitlines()[-1]
    return json.loads(page)[name]


STATES = """
import json
from emails.sending.transport_status import read_statuses
print(json.dumps({status.name: str(status.state) for status in read_statuses()}))
"""


def test_a_relay_that_never_answers_the_last_byte_keeps_its_messages(scenario):
    own = scenario.relays[0]
    own.chance.randrange = lambda _: 170  # After the reply to DATA, and before that to the final dot.
    own.set_mode("falls_silent")
    send(scenario, 5)
    wait_for(lambda: len(sent(scenario)) >= 5, seconds=60, what="copies at the silent relay")
    wait_for(lambda: _pinned(scenario) == [("own", 5)], seconds=60, what="pinned recipients")
    own.set_mode("refuses")
    time.sleep(3)
    assert _pinned(scenario) == [("own", 5)]
    own.set_mode("works")
    scenario.wait_until_idle(seconds=60)
    assert set(sent(scenario)) == {"own"}
    assert scenario.find_violations() == []


def _pinned(scenario):
    return scenario.stack.query(
        "SELECT handed_to, count(*)::int FROM emails_pending WHERE handed_to <> '' GROUP BY 1 ORDER BY 1"
    )
