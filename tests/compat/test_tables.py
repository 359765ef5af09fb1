"""The tables of docs/migrate/: each endpoint is where the table says."""

import re

import pytest
from django.urls import resolve, reverse

from tests.stack.stack import REPOSITORY

PAGES = REPOSITORY / "docs" / "migrate"
ROW = re.compile(r"^\| `(?P<method>[A-Z]+) (?P<path>/[^`]*)` \| (?P<state>there|differs|absent) \|", re.MULTILINE)
PLACEHOLDER = re.compile(r":\w+")


def table(dialect: str) -> dict[tuple[str, str], str]:
    text = (PAGES / f"{dialect}.md").read_text("utf-8")
    return {(row["method"], PLACEHOLDER.sub(":id", row["path"])): row["state"] for row in ROW.finditer(text)}


ROWS = [
    (dialect, *call, state) for dialect in ("resend", "postmark", "sendgrid") for call, state in table(dialect).items()
]


def action_of(dialect: str, method: str, path: str) -> str | None:
    view = resolve(f"/compat/{dialect}{path.replace(':id', 'x')}").func
    return view.actions.get(method.lower())


@pytest.mark.parametrize(("dialect", "method", "path", "state"), ROWS)
def test_an_endpoint_is_where_its_row_says(dialect, method, path, state):
    action = action_of(dialect, method, path)
    if state == "absent":
        assert action == "absent"
    else:
        assert action not in {"absent", None}


def test_paths_of_other_parts_can_still_be_reversed():
    assert reverse("docs") == "/docs/"
