"""Plans of faults: read strictly, struck at the nth visit, refused in production."""

import subprocess
import sys
import time

import pytest

from config import checks
from lib.worker import failpoints
from tests.stack.stack import REPOSITORY


@pytest.mark.parametrize(
    "text",
    ["nowhere:1:kill", "emails.after_claim:0:kill", "emails.after_claim:x:kill", "emails.after_claim:1:dance", "kill"],
)
def test_a_senseless_plan_is_told(text):
    with pytest.raises(ValueError, match="FAULT_PLAN holds"):
        failpoints.read_plan(text)


def test_a_point_is_struck_at_its_nth_visit_and_no_other():
    struck = failpoints.Faults(failpoints.read_plan("emails.after_claim:2:raise"))
    struck.visit("emails.after_claim")
    struck.visit("emails.after_record")
    with pytest.raises(failpoints.Fault):
        struck.visit("emails.after_claim")
    struck.visit("emails.after_claim")


def test_a_sleep_lasts_as_long_as_planned():
    started = time.monotonic()
    failpoints.Faults(failpoints.read_plan("emails.after_claim:1:sleep=0.05")).visit("emails.after_claim")
    assert time.monotonic() - started >= 0.05


def test_a_kill_ends_the_process_and_nothing_is_done_after_it():
    code = "from lib.worker.failpoints import fault; fault('emails.after_claim'); print('alive')"
    environment = {"FAULT_PLAN": "emails.after_claim:1:kill"}
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env=environment, capture_output=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (-9, b"")


def test_without_a_plan_a_point_does_nothing():
    assert failpoints.failpoint is failpoints._nothing
    assert failpoints.failpoint("emails.after_claim") is None


@pytest.mark.parametrize(
    ("plan", "purpose", "is_embedded", "words"),
    [
        ("emails.after_claim:1:kill", "", False, "FAULT_PLAN makes processes fail"),
        ("emails.after_claim:1:kill", "on purpose", False, ""),
        ("emails.after_claim:1:kill", "", True, ""),
        ("", "", False, ""),
    ],
)
def test_production_refuses_a_plan_that_is_not_on_purpose(monkeypatch, settings, plan, purpose, is_embedded, words):
    settings.EMBEDDED = is_embedded
    monkeypatch.setenv("FAULT_PLAN", plan)
    monkeypatch.setenv("FAULT_PLAN_IN_PRODUCTION", purpose)
    assert "".join(checks._faults())[: len(words) or None] == words
