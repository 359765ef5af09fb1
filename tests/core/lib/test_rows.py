"""Rows of one test: every failing row fails it, and rows do not see each other's changes."""

import inspect
import os

import pytest

from core.workspaces.models import Workspace
from streams.services import streams_cache
from tests.rows import each


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


def test_a_missing_exception_is_a_failure():
    @each(("text", "base"), [("7", 10), ("x", 10)])
    def is_no_number(text, base):
        with pytest.raises(ValueError):
            int(text, base)

    with pytest.raises(AssertionError, match="1 of 2 rows failed"):
        is_no_number()


@each("name", ["first", "second"])
def test_a_row_is_undone(alice, settings, monkeypatch, name):
    assert (Workspace.objects.get().name, "ROW" in os.environ, settings.SYSTEM_NAME == "Row") == ("alice", False, False)
    assert streams_cache.get("row") is None
    streams_cache.set("row", {})
    Workspace.objects.update(name=name)
    settings.SYSTEM_NAME = "Row"
    monkeypatch.setenv("ROW", name)
