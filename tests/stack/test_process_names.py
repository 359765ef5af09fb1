"""Processes have names, which `ps` shows, and log one line when they are ready."""

import json
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


NAMES = {
    "web": ["web", "web", "web supervisor"],
    "workers": ["supervisor", "worker0", "worker1"],
    "beat": ["beat"],
    "inbound": ["inbound"],
    "submission": ["submission0", "submission1", "supervisor"],
}
TWO = {"WEB_CONCURRENCY": "2", "WORKER_CONCURRENCY": "2", "SUBMISSION_CONCURRENCY": "2"}


def wait_for_names(stack, program, names):
    session, named = stack.processes[program].pid, [f"postrider: {name}" for name in names]
    wait_for(lambda: process_names(session) == named, seconds=60, what=f"{named}, not {process_names(session)}")


def test_each_process_has_a_name(stack):
    stack.start(*NAMES, **TWO)
    for program, names in NAMES.items():
        wait_for_names(stack, program, names)
    stack.stop([*NAMES])
    stack.start("service", MODE="embedded", WEB_CONCURRENCY="1", WORKER_CONCURRENCY="1")
    embedded = ["inbound", "inbox", "submission", "supervisor", "web", "web supervisor", "worker0"]
    wait_for_names(stack, "service", embedded)


def test_one_line_reports_that_the_process_is_ready(full_stack):
    for name in ("web", "worker", "beat"):
        log = full_stack.logs / f"{name}.log"
        wait_for(lambda log=log: "is ready" in log.read_text(), seconds=60, what=f"{name} is ready")
        (line,) = [json.loads(line) for line in log.read_text().splitlines() if "is ready" in line]
        assert (line["level"], line["message"]) == ("info", f"{name} is ready")
