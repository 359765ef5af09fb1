"""The official client libraries, installed outside of the working tree, and the running service."""

import email
import email.policy
import hashlib
import os
import shutil
import subprocess
import urllib.request
import venv
from collections.abc import Iterable
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.clients.conftest import Service
from tests.clients.node import cache, need_node, node_modules_of, run
from tests.stack.stack import Stack, wait_for
from tests.standards.tools import locked

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"
# The stack of another run has other messages.
RUN = uuid4().hex[:10]


@pytest.fixture
def stack(service: Service) -> Stack:
    return service.stack


@pytest.fixture
def test_key(service: Service) -> str:
    """Return a key that simulates received emails."""
    return service.test_key


@pytest.fixture(scope="session")
def node_scripts(tmp_path_factory: Any) -> Path:
    """Return a directory with the Node scripts and the libraries that they import."""
    need_node()
    home = tmp_path_factory.mktemp("node")
    for script in (*HERE.rglob("*.mjs"), *HERE.rglob("*.cjs")):
        shutil.copy(script, home)
    (home / "node_modules").symlink_to(node_modules_of(HERE))
    return home


@pytest.fixture(scope="session")
def python() -> str:
    """Return a Python with the libraries of REQUIREMENTS. Skips the test if the registry is unreachable."""
    home = cache().parent / "pip" / f"sdks-{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]}"
    program = home / "bin" / "python"
    with locked("pip"):
        if not (home / "complete").exists():
            shutil.rmtree(home, ignore_errors=True)
            venv.create(home, with_pip=True)
            command = [str(program), "-m", "pip", "install", "--quiet", "-r", str(REQUIREMENTS)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            if "Could not find a version" in done.stderr or "connection" in done.stderr.lower():
                pytest.skip("pip cannot reach its registry")
            assert done.returncode == 0, done.stderr
            (home / "complete").touch()
    return str(program)


def environment(stack: Stack, **variables: str) -> dict[str, str]:
    return {**os.environ, "URL": stack.url, "KEY": stack.key, "RUN": RUN, "PYTHONPATH": "", **variables}


def run_node(scripts: Path, name: str, stack: Stack, arguments: Iterable[str] = (), **variables: str) -> str:
    return run("node", name, *arguments, cwd=scripts, env=environment(stack, **variables))


def run_python(python: str, name: str, stack: Stack, **variables: str) -> str:
    return run(python, str(HERE / name), cwd=HERE, env=environment(stack, **variables))


def received(stack: Stack, recipient: str) -> EmailMessage:
    """Wait for the message of a recipient in the inbox and return it."""
    sql = "SELECT source FROM inbox_caughtmail WHERE recipient = %s"
    rows = wait_for(lambda: stack.query(sql, recipient), seconds=60, what=f"a message for {recipient}")
    message = email.message_from_bytes(bytes(rows[0][0]), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def assert_everything_arrived(stack: Stack, *, prefix: str) -> None:
    """Check the email with everything that the Node libraries send to Ada, with a copy and a blind copy."""
    for name in ("ada", "carol", "dan"):
        message = received(stack, f"{prefix}{name}-{RUN}@example.com")
        assert message["Subject"] == "Everything \u2013 \u2713"
        assert message["Reply-To"] == "one@demo.example, two@demo.example"
        assert (message["X-Entity-Ref-ID"], message["Bcc"]) == (RUN, None)
        assert message["Cc"] == f"{prefix}carol-{RUN}@example.com"
        files = {str(part.get_filename()): part for part in message.walk() if part.get_filename()}
        assert files["notes.txt"].get_content() == "Notes"
        assert (files["logo.png"]["Content-ID"], files["logo.png"].get_content()) == ("<logo>", b"\x89PNG")
        for kind, text in (("plain", "Hello in text"), ("html", "<p>Hello</p>")):
            body = message.get_body((kind,))
            assert body is not None
            assert text in body.get_content()


def unsubscribe_with_one_click(stack: Stack, message: EmailMessage, *, stream: str) -> list[tuple[str, str]]:
    """Unsubscribe from a stream as a mail program does (RFC 8058); return its suppressed addresses and the reasons."""
    assert message["List-Id"].strip(" <>").startswith(f"{stream}.")
    path = urlsplit(str(message["List-Unsubscribe"]).strip(" <>")).path
    request = urllib.request.Request(f"{stack.url}{path}", b"List-Unsubscribe=One-Click", method="POST")
    with urllib.request.urlopen(request, timeout=30) as response:
        assert response.status == 200
    rows = stack.call("GET", f"/suppressions?stream={stream}").body["data"]
    return [(row["email"], row["reason"]) for row in rows]
