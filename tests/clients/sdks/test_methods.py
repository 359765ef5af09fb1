"""The tables of docs/migrate/ contain every request that the methods of the official libraries make."""

import json

import pytest

from tests.clients.node import run
from tests.clients.sdks.conftest import HERE
from tests.interfaces.compat.test_tables import table

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("dialect", ["postmark", "sendgrid"])
def test_every_method_of_the_library_is_in_the_table(node_scripts, dialect):
    calls = {tuple(call.split(" ")) for call in json.loads(run("node", "calls.mjs", dialect, cwd=node_scripts))}
    assert len(calls) > 30
    assert calls - table(dialect).keys() == set()


def test_the_requests_of_sendgrids_python_library_are_in_the_table(python):
    calls = {tuple(call.split(" ")) for call in json.loads(run(python, str(HERE / "sendgrid_calls.py"), cwd=HERE))}
    assert calls
    assert calls - table("sendgrid").keys() == set()
