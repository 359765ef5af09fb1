"""Limits in seconds, which a busy machine exceeds: real ones in the long tests only; and the memory to limit."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.stack.stack import Stack

# What other programs on the machine may need.
PATIENT_SECONDS = 60.0


def limited(seconds: float) -> pytest.MarkDecorator:
    """Give the test a `limit`: a minute in the full tests, these seconds in the long ones (docs/decisions/0146)."""
    real = pytest.param(seconds, marks=pytest.mark.long, id="real")
    return pytest.mark.parametrize("limit", [pytest.param(PATIENT_SECONDS, id="patient"), real])


def private_bytes(stack: Stack, name: str) -> int:
    """Return the memory of a process and its children that no other process shares."""
    session, total = stack.processes[name].pid, 0
    for process in Path("/proc").glob("[0-9]*"):
        # An exited process has neither a session nor memory.
        with suppress(OSError):
            if os.getsid(int(process.name)) == session:
                lines = (process / "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
    return total
