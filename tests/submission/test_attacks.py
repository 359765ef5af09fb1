"""Each attack on the real submission process, beside an ordinary sender."""

import base64
import smtplib
import time

import pytest

from benchmarks.attacks.smtp import ATTACKS
from tests.stack.limits import PATIENT_SECONDS, limited
from tests.stack.stack import running_stack

pytestmark = pytest.mark.stack

MESSAGE = b"From: hello@demo.example\r\nTo: ada@example.com\r\nSubject: Hello\r\n\r\n" + b"Hello\r\n" * 5_000
FILE = (
    b"From: hello@demo.example\r\nContent-Type: a/b\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    + base64.encodebytes(b"x" * 3_000_000).replace(b"\n", b"\r\n")
)


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    with running_stack(tmp_path_factory.mktemp("attacks"), SUBMISSION_SESSIONS="100") as stack:
        stack.start("submission")
        submit(stack, MESSAGE)
        yield stack


@limited(3)
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_ordinary_sender_works_beside_an_attacker(stack, attack, limit):
    with ATTACKS[attack](stack):
        # The attacker has taken what they can.
        time.sleep(2)
        for source in (MESSAGE, FILE) * 5:
            started = time.monotonic()
            submit(stack, source)
            assert time.monotonic() - started < limit


def submit(stack, source: bytes) -> None:
    with smtplib.SMTP("127.0.0.1", int(stack.environment["SUBMISSION_PORTS"]), timeout=PATIENT_SECONDS) as client:
        client.login("x", stack.key)
        assert client.sendmail("hello@demo.example", ["ada@example.com"], source) == {}
