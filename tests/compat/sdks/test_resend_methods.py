"""The table of docs/migrate/resend.md has every method of Resend's Node library, and each behaves as its row says."""

import json
import re

import pytest

from tests.clients.node import run
from tests.compat.sdks.conftest import HERE, run_node
from tests.compat.test_tables import PAGES, PLACEHOLDER

ROW = re.compile(r"^\| `(?P<request>[A-Z]+ /[^`]*)` \| (?P<state>\w+) \| (?P<methods>[^|]+) \|", re.MULTILINE)
ROWS = list(ROW.finditer((PAGES / "resend.md").read_text("utf-8")))
# It makes no request; the test of webhooks calls it.
WITHOUT_REQUEST = {"webhooks.verify"}


def methods(*states: str) -> dict[str, set[str]]:
    """Return the requests of each method whose row has one of the states, by the name of the method."""
    found: dict[str, set[str]] = {}
    for row in ROWS:
        for name in re.findall("`([^`]+)`", row["methods"]) if row["state"] in states else ():
            found.setdefault(name, set()).add(PLACEHOLDER.sub(":id", row["request"]))
    return found


def test_the_table_has_every_method_with_its_requests(node_scripts):
    made = json.loads(run("node", "resend_methods.mjs", cwd=node_scripts))
    assert {name for name, requests in made.items() if not requests} == WITHOUT_REQUEST
    expected = {name: set(requests) for name, requests in made.items() if requests}
    assert methods("there", "differs", "absent") == expected


@pytest.mark.parametrize("method", sorted(methods("there", "differs") | dict.fromkeys(WITHOUT_REQUEST)))
def test_a_method_that_is_there_is_called_by_a_script(method):
    scripts = "".join(path.read_text("utf-8") for path in HERE.glob("resend*.mjs"))
    assert f"resend.{method}(" in scripts


def test_every_method_that_is_absent_is_answered_501(node_scripts, stack):
    absent = methods("absent").keys() - methods("there", "differs").keys()
    statuses = json.loads(run_node(node_scripts, "resend_methods.mjs", stack, arguments=sorted(absent)))
    assert statuses.keys() == absent
    assert {name: seen for name, found in statuses.items() if (seen := set(found) - {None}) != {501}} == {}
