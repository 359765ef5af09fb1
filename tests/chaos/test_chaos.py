"""A chaos run without violations."""

import secrets

import pytest

from tests.chaos.run import run, run_expiry, run_pace, run_receiving

pytestmark = [pytest.mark.stack, pytest.mark.alone]


# With both transports, and short of connections, a storm has every fault.
@pytest.mark.parametrize("seconds", [25, pytest.param(300, marks=pytest.mark.long)])
def test_every_guarantee_holds_in_a_chaos_run(tmp_path, seconds):
    report = run(tmp_path, seed=secrets.randbelow(10**6), seconds=seconds, has_two_transports=True)
    assert report.violations == [], str(report)


@pytest.mark.long
def test_every_guarantee_of_receiving_holds_in_a_chaos_run(tmp_path):
    report = run_receiving(tmp_path, seed=secrets.randbelow(10**6), seconds=300, is_short_of_connections=True)
    assert report.violations == [], str(report)


@pytest.mark.long
def test_every_guarantee_holds_while_receivers_slow_suspend_and_recover(tmp_path):
    report = run_pace(tmp_path, seed=secrets.randbelow(10**6), seconds=180)
    assert report.violations == [], str(report)


@pytest.mark.long
def test_no_message_is_sent_after_its_expiry_in_a_chaos_run(tmp_path):
    report = run_expiry(tmp_path, seed=secrets.randbelow(10**6), seconds=180)
    assert report.violations == [], str(report)
    assert report.sizes["expired"]
