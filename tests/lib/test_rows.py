"""Rows of one test: every failing row fails it, and rows do not see each other's changes."""

import inspect

import pytest

from tests.rows import each
from workspaces.models import User


def test_all_failing_rows_are_reported():
    @each("factor", [1, 2])
    @each(("number", "expected"), [(1, 1), (2, 4), (3, 5)])
    def check(factor, number, expected, tmp_path):
        if number == 3:
            pytest.fail("never right")
        assert factor * number == expected

    assert [*inspect.signature(check).parameters] == ["tmp_path"]
    with pytest.raises(AssertionError) as failure:
        check(tmp_path=None)
    text = str(failure.value)
    assert "2 of 2 rows failed" in text
    assert "{'factor': 1}: 2 of 3 rows failed\n{'number': 2, 'expected': 4}" in text
    assert "{'factor': 2}: 2 of 3 rows failed\n{'number': 1, 'expected': 1}" in text
    assert text.count("{'number': 3, 'expected': 5}: never right") == 2


@pytest.mark.django_db
@each("name", ["ada", "grace"])
def test_the_changes_of_a_row_are_rolled_back(name):
    assert not User.objects.exists()
    User.objects.create(email=f"{name}@example.com")
