"""The tutorial, executed as a reader would: all of its commands in one shell, in their order.

See docs/decisions/0214.
"""

import os
import re
import signal
import subprocess
from contextlib import suppress

import pytest

from tests.console.documentation.conftest import SECONDS
from tests.console.documentation.test_reference_samples import delete_all
from tests.console.documentation.test_samples import fences
from tests.stack.stack import free_port, wait_for

UNFINISHED = "SELECT 1 FROM privacy_erasure WHERE completed_at IS NULL"


@pytest.fixture
def shop(runner):
    """Return the running service without the things that the tutorial creates."""
    stack = runner.stack
    delete_all(stack, "/domains", name="shop.example")
    delete_all(stack, "/templates", name="tutorial-order")
    return runner


def prepared(text: str, *, stack, receiver_port: int) -> str:
    """Return commands for the running service: its URL, key and ports in place of those of `bin/run`."""
    for documented, real in {
        "http://127.0.0.1:8000": stack.url,
        "pr_…": stack.key,
        "127.0.0.1:9000": f"127.0.0.1:{receiver_port}",
        "127.0.0.1:2526": f"127.0.0.1:{stack.environment['INBOUND_PORT']}",
    }.items():
        assert documented in text, documented
        text = text.replace(documented, real)
    return text


def test_each_step_waits_for_the_event_of_its_own_email():
    commands = "".join(text for language, text in fences("tutorial") if language == "sh")
    waits = re.findall(r"until grep -q (.+) events.txt", commands)
    assert len(waits) == 4
    for wait in waits:
        event, email = re.fullmatch(r'"\^(\w+)\.\*(.+)"', wait).groups()
        assert f'"{event}"' in commands, wait
        assert re.search(f'"(?:to|subject)": "{re.escape(email)}"', commands), wait


@pytest.mark.full
def test_the_tutorial_runs_in_one_thread(shop, tmp_path):
    stack, port = shop.stack, free_port()
    blocks = fences("tutorial")
    (receiver,) = [text for language, text in blocks if language == "python"]
    (tmp_path / "receiver.py").write_text(receiver.replace("9000", str(port)))
    commands = "".join(text for language, text in blocks if language == "sh")
    script = prepared(commands, stack=stack, receiver_port=port)
    (tmp_path / "tutorial.sh").write_text(f"set -euo pipefail\n{script}")

    # Other guides send it, too, and one erases who gets it.
    wait_for(lambda: not stack.query(UNFINISHED), seconds=120, what="erasures of other guides")
    orders = "SELECT count(*) FROM inbox_caughtmail WHERE subject = 'Your order 1042'"
    ((before,),) = stack.query(orders)

    output = run_to_the_end(["bash", "tutorial.sh"], shop, tmp_path)

    events = [line.split("\t") for line in (tmp_path / "events.txt").read_text().splitlines()]
    assert {name for name, *_ in events} == {"delivered", "bounced", "opened", "clicked", "replied"}
    assert ["bounced", "bounced+tutorial@simulator.example", "Welcome"] in events
    assert ["delivered", "ada@example.com", "Your tea arrives today"] in events
    for text in (
        '"subject": "Your order 1042"', '"code": "recipient_suppressed"', '"reason": "bounce"',
        '"replyText": "Thank you, I am looking forward to it!"', "Rate your order",
    ):  # fmt: skip
        assert text in output, output
    assert stack.query(orders) == [(before + 1,)]
    assert stack.query("SELECT count(*) FROM emails_email WHERE subject = 'Welcome again'") == [(0,)]


def run_to_the_end(command, shop, home) -> str:
    """Return the output of a command. Ends the processes that it has left."""
    environment = shop.environment(home)
    # The curl of the other samples fails after an error; a reader's does not, and one step shows an error.
    environment["PATH"] = environment["PATH"].partition(":")[2]
    output = home / "output.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(command, cwd=home, env=environment, stdout=file, stderr=file, start_new_session=True)
    try:
        status = process.wait(timeout=SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert status == 0, output.read_text()
    return output.read_text()
