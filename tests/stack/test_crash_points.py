"""Every named point of lib/worker/failpoints.py, struck in a real stack; then the auditor. A new point is tested unasked."""

import re
import threading

import pytest

from lib.worker.failpoints import POINTS
from tests.stack.scenario import LEASE_SECONDS, mend, running_scene
from tests.stack.stack import REPOSITORY, wait_for

# What is done there; who sleeps for longer than his lease finds his work taken over.
ACTIONS = ("kill", "raise", f"sleep={LEASE_SECONDS + 2}", "drop_database", "drop_redis")
# The sharpest of each room run every time, the others with --long.
ALWAYS = {
    "emails.before_accept_commit", "emails.after_accept_commit", "emails.after_cancel_commit", "emails.after_claim",
    "delivery.after_dot", "emails.before_record", "webhooks.after_post", "inbound.after_store",
}  # fmt: skip
CALL = re.compile(r"\bfault\(\"([a-z_.]+)\"\)")
ROOMS = (
    "emails",
    "webhooks",
    "inbound",
    "delivery",
    "drain",
    "suppressions",
    "workspaces",
    "tracking",
    "domains",
    "analytics",
    "system_mail",
    "templates_app",
    "api",
)


# Between what a transport returns and its result stands nothing but the point: no error can come from there.
CANNOT_RAISE = {"emails.after_hand_over"}


def cases():
    for action in ACTIONS:
        always = {"kill": ALWAYS, "raise": {"emails.after_claim"}}.get(action, set())
        for point in POINTS:
            if action == "raise" and point in CANNOT_RAISE:
                continue
            marks = [] if point in always else pytest.mark.long
            yield pytest.param(point, action, id=f"{point}-{action.partition('=')[0]}", marks=marks)


def test_the_registry_knows_every_point_of_the_source_and_no_other():
    sources = [path for room in ROOMS for path in (REPOSITORY / room).rglob("*.py")]
    found = [point for path in sources for point in CALL.findall(path.read_text())]
    assert set(found) == set(POINTS)
    assert len(found) == len(set(found)), "a name belongs to one place"


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with running_scene(tmp_path_factory.mktemp("scene")) as scene:
        yield scene


def play(scene):
    """Do a little of everything that the points lie on."""
    demo, other = scene.tenants
    later = scene.send(demo, scene.address(), seconds=600)
    soon = scene.send(other, scene.address(), seconds=2)
    assert later
    assert soon
    assert scene.cancel(later)
    scene.send(demo, scene.address(), scene.address())
    first = scene.send(other, scene.address())
    scene.batch(demo, scene.address(), scene.address(), scene.address())
    scene.send(demo, scene.address("simulator.test", "clicked"))
    blocked = scene.address()
    scene.suppress(other, blocked)
    assert scene.send(other, blocked) is None
    assert first
    (address,) = first.addresses
    arrived = wait_for(
        lambda: [copy for copy in scene.ledger.copies if copy.recipient == address], seconds=120, what="a first copy"
    )
    wait_for(lambda: is_sent(scene, address), seconds=120, what="its outcome")
    # Hosts tell a bounce twice; the second finds whatever a dead receiver has left.
    scene.report_bounce(arrived[0])
    scene.expire_leases()
    scene.report_bounce(arrived[0])
    scene.stack.query("UPDATE domains_domain SET check_due_at = now() RETURNING 1")
    scene.sweep("analytics.tasks.fold", "domains.tasks.verify_due")


def is_sent(scene, address):
    return scene.stack.query("SELECT state FROM emails_recipient WHERE address = %s", address) == [("sent",)]


@pytest.mark.stack
@pytest.mark.parametrize(("point", "action"), list(cases()))
def test_a_fault_at_any_point_breaks_no_promise(scene, point, action):
    name = POINTS[point][0]
    for other in ("web", "worker", "inbound"):
        scene.run(other, f"{point}:1:{action}" if other == name else "")
    struck = mend(scene, name, point, is_deadly=action == "kill")
    play(scene)
    struck.result()
    # What beat would do a while later: a dead receiver's claims are taken over.
    scene.expire_leases()
    scene.sweep("inbound.tasks.process")
    scene.settle()
    assert scene.findings() == []
    assert threading.active_count() < 50
