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


@pytest.mark.parametrize(
    ("seconds", "is_short_of_connections"),
    [(30, False), pytest.param(600, False, marks=pytest.mark.long), pytest.param(600, True, marks=pytest.mark.long)],
)
def test_every_guarantee_of_receiving_holds_in_a_chaos_run(tmp_path, seconds, is_short_of_connections):
    seed = secrets.randbelow(10**6)
    report = run_receiving(tmp_path, seed=seed, seconds=seconds, is_short_of_connections=is_short_of_connections)
    assert report.violations == [], str(report)
