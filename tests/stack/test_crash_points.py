"""Every failpoint of core/lib/worker/failpoints.py, injected in a real stack and audited; new points are included.

See docs/decisions/0339.
"""

import re
import threading
import tomllib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import zip_longest

import psycopg
import pytest

from core.lib.worker.failpoints import POINTS
from tests.chaos.receiving_routes import FORWARDED, create_routes, record_forwards
from tests.stack.scenario import LEASE_SECONDS, recover_after_failpoint, running_scenario
from tests.stack.stack import REPOSITORY, wait_for

# A process that sleeps for longer than its lease loses its claimed entries to another worker.
ACTIONS = ("kill", "raise", f"sleep={LEASE_SECONDS + 2}", "drop_database", "drop_redis")
# A kill of each kind of process, an error and a lost connection run every time, all points with --long.
ALWAYS = {
    "kill": ["emails.after_accept_commit", "delivery.after_dot", "submission.before_reply", "receiving.after_commit"],
    "raise": ["emails.after_claim"],
    "drop_database": ["emails.before_record_commit"],
}
CALL = re.compile(r"\bfailpoint\(\"([a-z_.]+)\"\)")
PROCESSES = ("web", "worker", "inbound", "submission")
PACKAGES = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]


# Nothing else between the transport and its result can raise.
CANNOT_HAPPEN = {("emails.after_hand_over", "raise")}


def rounds(action: str) -> list[list[str]]:
    """Return all points, in rounds of points in parts of the service that do not wait for each other.

    A process that is killed visits one point of a round.
    """
    parts = defaultdict(list)
    for point, (process, _) in POINTS.items():
        if (point, action) not in CANNOT_HAPPEN:
            parts[process, "" if action == "kill" else point.partition(".")[0]].append(point)
    return [[point for point in points if point] for points in zip_longest(*parts.values())]


def cases():
    for action, points in ALWAYS.items():
        yield pytest.param(action, [points], id=f"{action.partition('=')[0]}-always")
    for action in ACTIONS:
        yield pytest.param(action, rounds(action), id=action.partition("=")[0], marks=pytest.mark.long)


def test_each_point_is_in_a_round_of_each_action():
    for action in ACTIONS:
        points = [point for points in rounds(action) for point in points]
        assert sorted(points) == sorted(point for point in POINTS if (point, action) not in CANNOT_HAPPEN), action


def test_the_registry_lists_exactly_the_failpoints_of_the_source():
    sources = [path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py")]
    found = [point for path in sources for point in CALL.findall(path.read_text())]
    assert set(found) == set(POINTS)
    assert len(found) == len(set(found)), "each name is used once"


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    with running_scenario(tmp_path_factory.mktemp("scene")) as scenario:
        create_routes(scenario)
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
    scenario.submit_once(other, scenario.address())
    scenario.batch(demo, scenario.address(), scenario.address(), scenario.address())
    scenario.send(demo, scenario.address("simulator.test", "clicked"))
    for tenant in (demo, other, demo):
        scenario.receive(tenant)
    scenario.receive(other, to=f"{FORWARDED}+{next(scenario.numbers)}@{other.domain}")
    for path in ("/erasures", "/subject-exports"):
        assert scenario.call(demo, "POST", path, {"email": scenario.address(local="nobody")})[0] == 202
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


def is_sent(scenario, address):
    # A fault may end the connection of this query, too.
    with suppress(psycopg.OperationalError):
        return scenario.stack.query("SELECT state FROM emails_recipient WHERE address = %s", address) == [("sent",)]
    return False


@pytest.mark.stack
@pytest.mark.parametrize(("action", "rounds_of_points"), list(cases()))
def test_every_guarantee_holds_after_a_fault_at_any_failpoint(scenario, action, rounds_of_points):
    for points in rounds_of_points:
        faults = f"{action} at {', '.join(points)}"
        recoveries = start_with_faults(scenario, points, action)
        exercise_all_points(scenario)
        wait_until_recovered(scenario, recoveries)
        scenario.wait_until_idle()
        scenario.record_unanswered()
        record_forwards(scenario)
        if action == "raise" and "web" in {POINTS[point][0] for point in points}:
            # The response to a bug, after which clients repeat their request.
            scenario.internal_errors.clear()
        assert scenario.find_violations() == [], faults
        assert threading.active_count() < 50, faults


def start_with_faults(scenario, points, action):
    """Start each process with its faults, and wait for them in the background."""
    processes = {point: POINTS[point][0] for point in points}
    plans = {name: [] for name in PROCESSES}
    for point, name in processes.items():
        plans[name].append(f"{point}:1:{action}")
    since = {name: len(scenario.log(name)) for name in PROCESSES}
    with ThreadPoolExecutor(len(plans)) as pool:
        list(pool.map(scenario.run, plans, map(",".join, plans.values())))
    return [
        recover_after_failpoint(scenario, name, point, since=since[name], is_deadly=action == "kill")
        for point, name in processes.items()
    ]


def wait_until_recovered(scenario, recoveries):
    """Run beat's tasks, which a fault may lose, until each fault has happened; then take over all claims."""
    is_over = False
    while not is_over:
        with suppress(psycopg.OperationalError):
            scenario.stack.query("UPDATE domains_domain SET check_due_at = now() RETURNING 1")
        scenario.enqueue_tasks(
            "analytics.tasks.fold", "domains.tasks.drain", "privacy.tasks.erase", "privacy.tasks.export"
        )
        is_over = not wait(recoveries, timeout=1).not_done
    for recovery in recoveries:
        recovery.result()
    # Like beat later: take over the claims of a killed inbound server.
    scenario.expire_leases()
    scenario.enqueue_tasks("inbound.tasks.process", "receiving.tasks.drain")
