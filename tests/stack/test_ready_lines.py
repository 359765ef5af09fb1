"""Web, worker and beat log one line when they are ready."""

import json

import pytest

from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("name", ["web", "worker", "beat"])
def test_one_line_reports_that_the_process_is_ready(full_stack, name):
    log = full_stack.logs / f"{name}.log"
    wait_for(lambda: "is ready" in log.read_text(), seconds=60, what=f"{name} is ready")
    (line,) = [json.loads(line) for line in log.read_text().splitlines() if "is ready" in line]
    assert (line["level"], line["message"]) == ("info", f"{name} is ready")
