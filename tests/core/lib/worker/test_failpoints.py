"""Failpoints: strict parsing of plans, failures at the nth visit, refusal in production."""

import subprocess
import sys
import time

import pytest

from config import checks
from core.lib.worker import failpoints
from tests.rows import each
from tests.stack.stack import REPOSITORY


@each(
    "text",
    ["nowhere:1:kill", "emails.after_claim:0:kill", "emails.after_claim:x:kill", "emails.after_claim:1:dance", "kill"],
)
def test_an_invalid_plan_is_refused(text):
    with pytest.raises(ValueError, match=r"FAULT_PLAN: .* is not a valid"):
        failpoints.parse_plan(text)


def test_a_failpoint_fails_at_its_nth_visit_only():
    plan = failpoints.FailurePlan(failpoints.parse_plan("emails.after_claim:2:raise"))
    plan.visit("emails.after_claim")
    plan.visit("emails.after_record")
    with pytest.raises(failpoints.FailpointError):
        plan.visit("emails.after_claim")
    plan.visit("emails.after_claim")


def test_a_sleep_lasts_as_long_as_planned():
    started = time.monotonic()
    failpoints.FailurePlan(failpoints.parse_plan("emails.after_claim:1:sleep=0.05")).visit("emails.after_claim")
    assert time.monotonic() - started >= 0.05


def test_a_kill_ends_the_process_immediately():
    code = "from core.lib.worker.failpoints import failpoint; failpoint('emails.after_claim'); print('alive')"
    environment = {"FAULT_PLAN": "emails.after_claim:1:kill"}
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env=environment, capture_output=True, check=False
    )
    assert (process.returncode, process.stdout) == (-9, b"")


def test_without_a_plan_a_failpoint_does_nothing():
    assert failpoints.failpoint is failpoints._do_nothing
    assert failpoints.failpoint("emails.after_claim") is None


@pytest.mark.parametrize(
    ("plan", "purpose", "is_embedded", "message"),
    [
        ("emails.after_claim:1:kill", "", False, "FAULT_PLAN makes processes fail"),
        ("emails.after_claim:1:kill", "on purpose", False, ""),
        ("emails.after_claim:1:kill", "", True, ""),
        ("", "", False, ""),
    ],
)
def test_production_refuses_a_plan_without_confirmation(monkeypatch, settings, plan, purpose, is_embedded, message):
    settings.EMBEDDED = is_embedded
    monkeypatch.setenv("FAULT_PLAN", plan)
    monkeypatch.setenv("FAULT_PLAN_IN_PRODUCTION", purpose)
    assert "".join(checks._failpoints())[: len(message) or None] == message
