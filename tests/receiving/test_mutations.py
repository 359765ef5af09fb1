"""Mutated messages: none ends its reading with an exception, or takes long."""

import time

import pytest

from receiving.reading.budget import ProcessorBudget
from receiving.reading.message import read_received
from receiving.reading.signatures import SignedMessage
from tests.receiving.test_reading import MIXED
from tests.receiving.test_structure import ALTERNATIVE, FROM, IMAGE, mixed, page, plain
from tests.receiving.zone import ZoneLookups
from tests.rows import each
from tools.public_messages.mutations import mutated

MAX_SECONDS = 0.1
FILE = (
    "Content-Type: application/pdf; name*0*=utf-8''%C3%84; name*1=.pdf\nContent-Disposition: attachment;\n"
    ' filename="a b.pdf"; size=3\nContent-Transfer-Encoding: base64\n\nUEFSVC1PTkU=\nUEFSVC1UV08h'
)
QUOTED = plain("Gr=C3=BC=\n=C3=9Fe", "Content-Transfer-Encoding: quoted-printable\n")
FLOWED = mixed(QUOTED, page("<p>Gr&uuml;&szlig;e <a href=x>y</a>"), kind="multipart/alternative")
SIGNATURE = "DKIM-Signature: v=1; a=rsa-sha256; d=a.example; s=s; h=from; bh=AAAA; b=AAAA\n"
MESSAGES = (
    MIXED,
    FROM + mixed(FLOWED, FILE, IMAGE),
    f"Received: by x\n{FROM}{SIGNATURE}Content-Type: multipart/alternative; boundary=b1\n\n{ALTERNATIVE}",
    f"{FROM}Content-Type: text/html; charset=iso-2022-jp\n\n\x1b$B$3$s\x1b(B <!-- x --> &#x41;",
)
SOURCES = [message.replace("\n", "\r\n").encode() for message in MESSAGES]


def check(count: int, seed: int) -> None:
    slow = []
    for source in mutated(SOURCES, count=count, seed=seed):
        began = time.thread_time()
        reading = read_received(source, envelope_from="a@b.example", budget=ProcessorBudget())
        spent = time.thread_time() - began
        if spent > MAX_SECONDS:
            slow.append((spent, source))
        assert "\0" not in reading.text + reading.html + reading.subject
        signed = SignedMessage(source, ZoneLookups({}), ProcessorBudget())
        signed.verify_signatures()
        signed.verify_chain()
    assert slow == []


@each("seed", [1, 2, 3])
def test_a_mutated_message_is_read(seed):
    check(100, seed)


@pytest.mark.long
@each("seed", range(10, 20))
def test_ten_thousand_mutated_messages_are_read(seed):
    check(1_000, seed)
