"""Statements composed of fragments, and statements whose values the server binds."""

import pytest

from core.lib.sql import Fragment, compose, run_prepared
from tests.rows import each


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


@pytest.mark.django_db
@each(
    ["sql", "values", "row"],
    [
        ("SELECT %(b)s::int, %(a)s::text, %(b)s::int", {"a": "%s", "b": 2, "unused": 3}, (2, "%s", 2)),
        ("SELECT %s::int, %s::text, 7 %% 4", [1, "x"], (1, "x", 3)),
        ("SELECT 7 %% 4, '$1'", (), (3, "$1")),
    ],
)
def test_values_are_bound_by_name_or_position(sql, values, row):
    assert run_prepared(sql, values) == [row]


@pytest.mark.django_db
def test_a_long_statement_is_translated_once(monkeypatch):
    # psycopg would translate each statement of more than 4,096 characters again.
    statement = f"SELECT %(a)s::int /* {'long ' * 1000} */"
    assert run_prepared(statement, {"a": 1}) == [(1,)]
    monkeypatch.setattr("core.lib.sql.PLACEHOLDER", None)
    assert run_prepared(statement, {"a": 2}) == [(2,)]
