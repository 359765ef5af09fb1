"""A server that is killed while it accepts a message: one email with an idempotency key, a new one without."""

import contextlib
import re
import smtplib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interfaces.submission.fixtures import submit
from tests.stack.stack import running_stack, wait_for

pytestmark = pytest.mark.stack

MESSAGE = b"From: hello@demo.example\r\nTo: ada@example.com\r\nSubject: Hello\r\n%s\r\nHello Ada\r\n"
KEYED = MESSAGE % b"Idempotency-Key: k-1\r\n"
EMAILS = "SELECT count(*) FROM emails_email"
# Whether the message was committed when the server died.
POINTS = [
    pytest.param("submission.after_data", False, marks=pytest.mark.long),
    ("emails.before_accept_commit", False),
    ("emails.after_accept_commit", True),
    pytest.param("submission.before_reply", True, marks=pytest.mark.long),
]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with running_stack(tmp_path_factory.mktemp("kills")) as stack:
        yield stack


@pytest.fixture
def stack(running):
    """Return the stack without emails, and without the submission process afterwards."""
    running.execute("TRUNCATE emails_email, emails_acceptance CASCADE")
    yield running
    running.stop(running.processes.keys() & {"submission"})


def count(stack) -> int:
    ((number,),) = stack.query(EMAILS)
    return number


def kill_while_accepting(stack, point: str, source: bytes) -> None:
    stack.start("submission", FAULT_PLAN=f"{point}:1:kill")
    with pytest.raises(OSError):  # errors of smtplib are some
        submit_until_killed(stack, source)
    stack.kill("submission")
    stack.start("submission")


def submit_until_killed(stack, source: bytes) -> None:
    """Submit a message until the server dies: what a busy machine refuses has not reached the point."""
    while True:
        with contextlib.suppress(smtplib.SMTPResponseException):
            assert submit(stack, source)[0] != 250


@pytest.mark.parametrize(("point", "is_committed"), POINTS)
def test_a_repeat_with_a_key_is_one_email(stack, point, is_committed):
    kill_while_accepting(stack, point, KEYED)
    wait_for(lambda: count(stack) == int(is_committed), seconds=60, what="the transaction ends")
    code, text = submit(stack, KEYED)
    assert (code, text.endswith("(already accepted)"), count(stack)) == (250, is_committed, 1)
    assert submit(stack, KEYED)[1].endswith("(already accepted)")
    ((identifier,),) = stack.query("SELECT answer->>'id' FROM emails_acceptance")
    assert re.search(r"Accepted as (\w+)", text)[1] == identifier


def test_a_repeat_without_a_key_is_a_new_email(stack):
    kill_while_accepting(stack, "submission.before_reply", MESSAGE % b"")
    wait_for(lambda: count(stack) == 1, seconds=60, what="the transaction ends")
    assert submit(stack, MESSAGE % b"")[0] == 250
    assert count(stack) == 2


def test_every_email_whose_id_was_a_reply_is_stored_after_a_kill(stack):
    stack.start("submission", SUBMISSION_CONCURRENCY="2")
    accepted: list[str] = []
    killed = threading.Event()

    def submit_until_the_end(number: int) -> None:
        while not killed.is_set():
            # A session that is refused on a busy machine is repeated.
            with contextlib.suppress(OSError, smtplib.SMTPException):
                _, text = submit(stack, MESSAGE % b"X-Number: %d\r\n" % number)
                accepted.append(re.search(r"Accepted as (\w+)", text)[1])

    with ThreadPoolExecutor(16) as sessions:
        for number in range(16):
            sessions.submit(submit_until_the_end, number)
        try:
            wait_for(lambda: len(accepted) > 100, seconds=120, what="a hundred emails are accepted")
            stack.kill("submission")
        finally:
            killed.set()
    stored = {id_ for (id_,) in stack.query("SELECT payload->>'emailId' FROM emails_event")}
    assert len(stored) >= len(set(accepted)) == len(accepted)
    assert set(accepted) <= stored
