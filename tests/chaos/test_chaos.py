"""A chaos run without violations."""

import secrets

import pytest

from tests.chaos.run import run

pytestmark = [pytest.mark.stack, pytest.mark.alone]


@pytest.mark.parametrize("seconds", [25, pytest.param(600, marks=pytest.mark.long)])
def test_every_guarantee_holds_in_a_chaos_run(tmp_path, seconds):
    report = run(tmp_path, seed=secrets.randbelow(10**6), seconds=seconds)
    assert report.violations == [], str(report)
