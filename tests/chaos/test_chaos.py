"""Everything goes wrong at once, and the auditor finds nothing."""

import secrets

import pytest

from tests.chaos.run import run

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("seconds", [25, pytest.param(600, marks=pytest.mark.long)])
def test_in_a_storm_every_promise_is_kept(tmp_path, seconds):
    report = run(tmp_path, seed=secrets.randbelow(10**6), seconds=seconds)
    assert report.findings == [], str(report)
