"""Messages and exit codes of the command line that need no service."""

import os
import re
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import postrider_client
import pytest
from postrider_client import errors
from postrider_client.cli.error_messages import LIMITED, exit_code

ROOT = Path(__file__).parents[2]
PROBLEM = {"detail": "Your plan has 3 domains.", "status": 403, "code": "plan_limit_reached", "requestId": None}
PYTHON_OBJECT = re.compile(r"object at 0x|\w+\(|Error\b")


@pytest.fixture
def unused_port():
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def closing_port():
    """Return the port of a server that closes each connection without a response."""
    program = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)\n"
    program += "while True:\n c = s.accept()[0]; c.recv(9999); c.close()"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as server:
        yield int(server.stdout.readline())
        server.kill()


def run(tmp_path, *arguments, port=1):
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT / "clients/python/src"),
        "POSTRIDER_API_KEY": "pr_test_none",
        "POSTRIDER_URL": f"http://127.0.0.1:{port}",
    }
    program = [sys.executable, "-m", "postrider_client.cli", *arguments]
    return subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


def test_a_push_of_a_missing_directory_fails(tmp_path):
    result = run(tmp_path, "templates", "push", "missing", "--yes")
    assert (result.returncode, "There is no directory missing." in result.stderr) == (1, True)


def test_all_files_with_broken_front_matter_are_named(tmp_path):
    for name in ("first", "second"):
        (tmp_path / f"{name}.html").write_text("<p>No front matter</p>")
    result = run(tmp_path, "templates", "push", ".", "--yes")
    assert result.returncode == 1
    assert result.stderr.count("has no front matter") == 2


def test_a_limit_of_the_plan_is_no_missing_scope():
    assert exit_code(errors.PlanLimitReached(PROBLEM, headers={})) == LIMITED


def test_failed_connections_have_texts_without_python_objects(unused_port, closing_port):
    for port in (unused_port, closing_port):
        client = postrider_client.Postrider("pr_test_none", base_url=f"http://127.0.0.1:{port}", max_retries=0)
        with client, pytest.raises(errors.ConnectionFailed) as caught:
            client.domains.get("dom_1")
        assert not PYTHON_OBJECT.search(str(caught.value)), str(caught.value)
