"""A chaos run without violations."""

import secrets

import pytest

from tests.chaos.run import run, run_receiving

pytestmark = [pytest.mark.stack, pytest.mark.alone]


# A short storm with both transports has every fault.
@pytest.mark.parametrize(
    ("seconds", "has_two_transports"),
    [(25, True), pytest.param(600, False, marks=pytest.mark.long), pytest.param(600, True, marks=pytest.mark.long)],
)
def test_every_guarantee_holds_in_a_chaos_run(tmp_path, seconds, has_two_transports):
    report = run(tmp_path, seed=secrets.randbelow(10**6), seconds=seconds, has_two_transports=has_two_transports)
    assert report.violations == [], str(report)


@pytest.mark.long
@pytest.mark.parametrize("is_short_of_connections", [False, True])
def test_every_guarantee_of_receiving_holds_in_a_chaos_run(tmp_path, is_short_of_connections):
    seed = secrets.randbelow(10**6)
    report = run_receiving(tmp_path, seed=seed, seconds=600, is_short_of_connections=is_short_of_connections)
    assert report.violations == [], str(report)
