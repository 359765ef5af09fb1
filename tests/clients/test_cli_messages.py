"""Messages and exit codes of the command line that need no service."""

import re
import socket
import threading

import postrider_client
import pytest
from postrider_client import errors
from postrider_client.cli.error_messages import LIMITED, exit_code

from tests.clients.cli import CommandLine

PROBLEM = {"detail": "Your plan has 3 domains.", "status": 403, "code": "plan_limit_reached", "requestId": None}
PYTHON_OBJECT = re.compile(r"object at 0x|\w+\(|Error\b")


def test_a_push_of_a_missing_directory_or_of_files_without_front_matter_fails(tmp_path):
    environment = {"HOME": str(tmp_path), "POSTRIDER_API_KEY": "pr_none", "POSTRIDER_URL": "http://127.0.0.1:1"}
    cli = CommandLine(environment, tmp_path)
    result = cli.run("templates", "push", "missing", "--yes")
    assert (result.code, "There is no directory missing." in result.errors) == (1, True)
    for name in ("first", "second"):
        (tmp_path / f"{name}.html").write_text("<p>No front matter</p>")
    result = cli.run("templates", "push", ".", "--yes")
    assert (result.code, result.errors.count("has no front matter")) == (1, 2)


def test_a_limit_of_the_plan_is_no_missing_scope():
    assert exit_code(errors.PlanLimitReached(PROBLEM, headers={})) == LIMITED


def test_failed_connections_have_texts_without_python_objects():
    with socket.create_server(("127.0.0.1", 0)) as closing, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        threading.Thread(target=close_one, args=(closing,)).start()
        for port in (unused.getsockname()[1], closing.getsockname()[1]):
            client = postrider_client.Postrider("pr_test_none", base_url=f"http://127.0.0.1:{port}", max_retries=0)
            with client, pytest.raises(errors.ConnectionFailed) as caught:
                client.domains.get("dom_1")
            assert not PYTHON_OBJECT.search(str(caught.value)), str(caught.value)


def close_one(server):
    """Close one connection without a response."""
    connection, _ = server.accept()
    connection.recv(9999)
    connection.close()
