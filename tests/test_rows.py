"""The rows of a test: all are tried, and each begins with the same objects, settings and patches."""

import os

import pytest

from streams.services import streams_cache
from tests.rows import each
from workspaces.models import Workspace


def test_every_failing_row_is_reported_and_named():
    @each("number", [1, 2, 3])
    def is_two(number):
        assert number == 2

    with pytest.raises(BaseExceptionGroup, match="2 of 3 rows fail") as caught:
        is_two()
    notes = [failure.__notes__ for failure in caught.value.exceptions]
    assert notes == [["Row: {'number': 1}"], ["Row: {'number': 3}"]]


def test_a_missing_exception_is_a_failure():
    @each(("text", "base"), [("7", 10), ("x", 10)])
    def is_no_number(text, base):
        with pytest.raises(ValueError):
            int(text, base)

    with pytest.raises(BaseExceptionGroup, match="1 of 2 rows fail"):
        is_no_number()


@each("name", ["first", "second"])
def test_a_row_is_undone(alice, settings, monkeypatch, name):
    assert (Workspace.objects.get().name, "ROW" in os.environ, settings.SYSTEM_NAME == "Row") == ("alice", False, False)
    assert streams_cache.get("row") is None
    streams_cache.set("row", {})
    Workspace.objects.update(name=name)
    settings.SYSTEM_NAME = "Row"
    monkeypatch.setenv("ROW", name)
