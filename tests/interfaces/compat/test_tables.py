"""The tables of docs/migrate/ (docs/decisions/0156): each endpoint is where the table says, and no other exists."""

import re
from importlib import import_module

from django.urls import ResolverMatch, get_resolver, resolve, reverse

from config.management.commands.document_dialects import with_table
from interfaces.compat.apps import DIALECTS
from interfaces.compat.endpoints import list_endpoints
from tests.rows import each
from tests.stack.stack import REPOSITORY

PAGES = REPOSITORY / "docs" / "migrate"
ROW = re.compile(r"^\| `(?P<method>[A-Z]+) (?P<path>/[^`]*)` \| (?P<state>full|differs|absent) \|", re.MULTILINE)
PLACEHOLDER = re.compile(r":\w+")


def table(dialect: str) -> dict[tuple[str, str], str]:
    text = (PAGES / f"{dialect}.md").read_text("utf-8")
    return {(row["method"], PLACEHOLDER.sub(":id", row["path"])): row["state"] for row in ROW.finditer(text)}


ROWS = [(dialect, *call, state) for dialect in DIALECTS for call, state in table(dialect).items()]


def match_of(dialect: str, path: str) -> ResolverMatch:
    return resolve(path.replace(":id", "x"), urlconf=f"interfaces.compat.{dialect}.urls")


def available_endpoints(dialect: str) -> set[tuple[str, str]]:
    """Return method and route of each endpoint in a dialect's URL configuration that is not absent."""
    return {
        (method.upper(), str(entry.pattern))
        for entry in get_resolver(f"interfaces.compat.{dialect}.urls").url_patterns
        for method, action in entry.callback.actions.items()
        # DRF adds HEAD with the first request.
        if action != "absent" and method != "head"
    }


@each(("dialect", "method", "path", "state"), ROWS)
def test_an_endpoint_is_where_its_row_says(dialect, method, path, state):
    action = match_of(dialect, path).func.actions.get(method.lower())
    if state == "absent":
        assert action == "absent"
    else:
        assert action not in {"absent", None}


@each("dialect", DIALECTS)
def test_the_page_is_current(dialect):
    page = (PAGES / f"{dialect}.md").read_text("utf-8")
    assert with_table(page, dialect) == page, "Run manage.py document_dialects."


@each("dialect", DIALECTS)
def test_every_note_is_about_an_endpoint(dialect):
    requests = {f"{endpoint.method} {endpoint.path}" for endpoint in list_endpoints(dialect)}
    assert import_module(f"interfaces.compat.{dialect}.unsupported").NOTES.keys() <= requests
    assert len(requests) == len(list_endpoints(dialect))


@each("dialect", DIALECTS)
def test_every_available_endpoint_has_a_row(dialect):
    rows = {(method, path) for (method, path), state in table(dialect).items() if state != "absent"}
    assert {(method, match_of(dialect, path).route) for method, path in rows} == available_endpoints(dialect)
    # No two rows are about the same endpoint.
    assert len(rows) == len(available_endpoints(dialect))


def test_paths_of_other_parts_can_still_be_reversed():
    assert reverse("docs") == "/docs/"
