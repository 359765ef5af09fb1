"""Every failpoint of core/lib/worker/failpoints.py, injected in a real stack and audited; new points are included."""

import re
import threading
import tomllib
from contextlib import suppress

import psycopg
import pytest

from core.lib.worker.failpoints import POINTS
from tests.stack.scenario import LEASE_SECONDS, recover_after_failpoint, running_scenario
from tests.stack.stack import REPOSITORY, wait_for

# A process that sleeps for longer than its lease loses its claimed entries to another worker.
ACTIONS = ("kill", "raise", f"sleep={LEASE_SECONDS + 2}", "drop_database", "drop_redis")
# A kill of each kind of process, an error and a lost connection run every time, the others with --long.
ALWAYS = {
    "kill": {"emails.after_accept_commit", "delivery.after_dot", "submission.before_reply", "receiving.after_commit"},
    "raise": {"emails.after_claim"},
    "drop_database": {"emails.before_record_commit"},
}
CALL = re.compile(r"\bfailpoint\(\"([a-z_.]+)\"\)")
PACKAGES = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]


# Nothing else between the transport and its result can raise.
CANNOT_RAISE = {"emails.after_hand_over"}


def cases():
    for action in ACTIONS:
        for point in POINTS:
            if action == "raise" and point in CANNOT_RAISE:
                continue
            marks = [] if point in ALWAYS.get(action, set()) else pytest.mark.long
            yield pytest.param(point, action, id=f"{point}-{action.partition('=')[0]}", marks=marks)


def test_the_registry_lists_exactly_the_failpoints_of_the_source():
    sources = [path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py")]
    found = [point for path in sources for point in CALL.findall(path.read_text())]
    assert set(found) == set(POINTS)
    assert len(found) == len(set(found)), "each name is used once"


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    with running_scenario(tmp_path_factory.mktemp("scene")) as scenario:
        yield scenario


def exercise_all_points(scenario):
    """Use every feature that has a failpoint."""
    demo, other = scenario.tenants
    later = scenario.send(demo, scenario.address(), seconds=600)
    soon = scenario.send(other, scenario.address(), seconds=2)
    assert later
    assert soon
    assert scenario.cancel(later)
    scenario.send(demo, scenario.address(), scenario.address())
    first = scenario.send(other, scenario.address())
    scenario.submit(demo, scenario.address(), scenario.address())
    scenario.batch(demo, scenario.address(), scenario.address(), scenario.address())
    scenario.send(demo, scenario.address("simulator.test", "clicked"))
    for tenant in (demo, other, demo):
        scenario.receive(tenant)
    suppressed = scenario.address()
    scenario.suppress(other, suppressed)
    assert scenario.send(other, suppressed) is None
    assert first
    (address,) = first.addresses
    received = wait_for(
        lambda: [one for one in scenario.ledger.messages if one.recipient == address],
        seconds=120,
        what="a message",
    )
    wait_for(lambda: is_sent(scenario, address), seconds=120, what="its delivery status")
    # The bounce is sent twice; the second one covers the state that a killed inbound server left.
    scenario.report_bounce(received[0])
    scenario.expire_leases()
    scenario.report_bounce(received[0])
    scenario.stack.query("UPDATE domains_domain SET check_due_at = now() RETURNING 1")
    scenario.enqueue_tasks("analytics.tasks.fold", "domains.tasks.drain")


def is_sent(scenario, address):
    # A fault may end the connection of this query, too.
    with suppress(psycopg.OperationalError):
        return scenario.stack.query("SELECT state FROM emails_recipient WHERE address = %s", address) == [("sent",)]
    return False


@pytest.mark.stack
@pytest.mark.parametrize(("point", "action"), list(cases()))
def test_every_guarantee_holds_after_a_fault_at_any_failpoint(scenario, point, action):
    name = POINTS[point][0]
    for other in ("web", "worker", "inbound", "submission"):
        scenario.run(other, f"{point}:1:{action}" if other == name else "")
    recovery = recover_after_failpoint(scenario, name, point, is_deadly=action == "kill")
    exercise_all_points(scenario)
    recovery.result()
    # Like beat later: take over the claims of a killed inbound server.
    scenario.expire_leases()
    scenario.enqueue_tasks("inbound.tasks.process", "receiving.tasks.drain")
    scenario.wait_until_idle()
    assert scenario.find_violations() == []
    assert threading.active_count() < 50
