"""Processes have names, which `ps` shows."""

from pathlib import Path

import pytest

from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


def process_names(session):
    """Return the commands of the processes of a session, in order; an exited one has none."""
    names = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and int((process / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                names.append((process / "cmdline").read_bytes().rstrip(b"\0").decode())
        except OSError:
            continue
    return sorted(filter(None, names))


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("web", ["postrider: web", "postrider: web", "postrider: web supervisor"]),
        ("workers", ["postrider: supervisor", "postrider: worker0", "postrider: worker1"]),
        ("beat", ["postrider: beat"]),
        ("inbound", ["postrider: inbound"]),
        ("submission", ["postrider: submission0", "postrider: submission1", "postrider: supervisor"]),
    ],
)
def test_each_process_of_production_has_a_name(stack, program, names):
    two = {"WEB_CONCURRENCY": "2", "WORKER_CONCURRENCY": "2", "SUBMISSION_CONCURRENCY": "2"}
    stack.start(program, **two)
    session = stack.processes[program].pid
    wait_for(lambda: process_names(session) == names, seconds=60, what=f"{names} instead of {process_names(session)}")


def test_each_process_of_the_embedded_mode_has_a_name(stack):
    stack.start("service", MODE="embedded", WEB_CONCURRENCY="1", WORKER_CONCURRENCY="1")
    names = ["inbound", "inbox", "submission", "supervisor", "web", "web supervisor", "worker0"]
    session, named = stack.processes["service"].pid, [f"postrider: {name}" for name in names]
    wait_for(lambda: process_names(session) == named, seconds=60, what=f"{named}, not {process_names(session)}")
