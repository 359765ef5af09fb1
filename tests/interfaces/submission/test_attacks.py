"""Each attack on the real submission process, beside an ordinary sender."""

import base64
import time

import pytest

from tests.interfaces.submission.fixtures import submit
from tests.stack.limits import limited
from tests.stack.stack import running_stack
from tools.benchmarks.attacks.smtp import ATTACKS

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
        assert submit(stack, MESSAGE)[0] == 250
        yield stack


@limited(3)
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_ordinary_sender_works_beside_an_attacker(stack, attack, limit):
    with ATTACKS[attack](stack):
        # The attacker has taken what they can.
        time.sleep(2)
        for source in (MESSAGE, FILE) * 5:
            started = time.monotonic()
            assert submit(stack, source)[0] == 250
            assert time.monotonic() - started < limit
