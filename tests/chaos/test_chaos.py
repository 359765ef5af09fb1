"""A chaos run without violations."""

import secrets

import pytest

from tests.chaos.run import run, run_receiving

pytestmark = [pytest.mark.stack, pytest.mark.alone]


@pytest.mark.parametrize("has_two_transports", [False, True], ids=["one transport", "two transports"])
@pytest.mark.parametrize("seconds", [25, pytest.param(600, marks=pytest.mark.long)])
def test_every_guarantee_holds_in_a_chaos_run(tmp_path, seconds, has_two_transports):
    report = run(tmp_path, seed=secrets.randbelow(10**6), seconds=seconds, has_two_transports=has_two_transports)
    assert report.violations == [], str(report)


@pytest.mark.parametrize("is_short", [False, True], ids=["all faults", "short of connections"])
@pytest.mark.parametrize("seconds", [30, pytest.param(600, marks=pytest.mark.long)])
def test_every_guarantee_of_receiving_holds_in_a_chaos_run(tmp_path, seconds, is_short):
    report = run_receiving(tmp_path, seed=secrets.randbelow(10**6), seconds=seconds, is_short_of_connections=is_short)
    assert report.violations == [], str(report)
