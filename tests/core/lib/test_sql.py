"""Statements composed of fragments."""

import pytest

from core.lib.sql import Fragment, compose


def test_a_statement_has_the_parts_and_the_parameters_of_all():
    part = Fragment("SELECT %(a)s", {"a": 1})
    statement = compose("WITH part AS ({part}) SELECT %(b)s FROM part", {"b": 2}, part=part)
    assert statement == Fragment("WITH part AS (SELECT %(a)s) SELECT %(b)s FROM part", {"b": 2, "a": 1})


def test_parts_may_share_a_value():
    parts = {name: Fragment("%(workspace)s", {"workspace": 7}) for name in ("one", "other")}
    assert compose("{one} {other}", {"workspace": 7}, **parts).params == {"workspace": 7}


def test_two_values_for_one_name_are_refused():
    with pytest.raises(ValueError, match="limit"):
        compose("%(limit)s {part}", {"limit": 1}, part=Fragment("%(limit)s", {"limit": 2}))
