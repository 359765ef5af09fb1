"""The table of docs/migrate/resend.md has every method of Resend's Node library, and each behaves as its row says."""

import json

import pytest

from tests.clients.node import run
from tests.clients.sdks.conftest import HERE, run_node
from tests.interfaces.compat.test_tables import table

# It makes no request; the test of webhooks calls it.
WITHOUT_REQUEST = {"webhooks.verify"}
ROWS = {f"{method} {path}": state for (method, path), state in table("resend").items()}


@pytest.fixture(scope="module")
def methods(node_scripts) -> dict[str, list[str]]:
    """Return the requests of each method of the library by its name."""
    made: dict[str, list[str]] = json.loads(run("node", "resend_methods.mjs", cwd=node_scripts))
    return made


def test_the_table_has_every_method_with_its_requests(methods):
    assert {name for name, requests in methods.items() if not requests} == WITHOUT_REQUEST
    assert {request for requests in methods.values() for request in requests} == ROWS.keys()


def test_every_method_that_is_there_is_called_by_a_script(methods):
    scripts = "".join(path.read_text("utf-8") for path in HERE.glob("resend*.mjs"))
    there = {name for name, requests in methods.items() if any(ROWS[request] != "absent" for request in requests)}
    assert len(there) > 30
    assert {name for name in there | WITHOUT_REQUEST if f"resend.{name}(" not in scripts} == set()


def test_every_method_that_is_absent_is_answered_501(methods, node_scripts, stack):
    absent = {
        name for name, requests in methods.items() if requests and {ROWS[request] for request in requests} == {"absent"}
    }
    assert len(absent) > 50
    statuses = json.loads(run_node(node_scripts, "resend_methods.mjs", stack, arguments=sorted(absent)))
    assert statuses.keys() == absent
    assert {name: seen for name, found in statuses.items() if (seen := set(found) - {None}) != {501}} == {}
