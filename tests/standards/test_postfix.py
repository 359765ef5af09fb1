"""A strict Postfix accepts every shape and relays it unchanged, so that the signature stays valid."""

import smtplib
from collections.abc import Iterator
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from tests.stack.stack import free_port, wait_for
from tests.standards import shapes
from tests.standards.postfix import Postfix
from tests.standards.test_signatures import is_verified_by_dkimpy

WAIT_SECONDS = 30.0
SENDER = "bounces@alice.example"


class Sink:
    """The next host after Postfix: records messages, and refuses addresses that begin with "nobody"."""

    def __init__(self) -> None:
        self.received: dict[str, bytes] = {}

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:  # noqa: N802
        if address.startswith("nobody"):
            return "550 5.1.1 No such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        for address in envelope.rcpt_tos:
            self.received[address] = envelope.original_content
        return "250 OK"


@pytest.fixture
def sink() -> Iterator[tuple[Sink, int]]:
    handler = Sink()
    controller = Controller(handler, hostname="127.0.0.1", port=free_port(), data_size_limit=50_000_000)
    controller.start()
    yield handler, controller.port
    controller.stop()


def test_every_shape_is_relayed_unchanged_and_a_refused_one_bounces(sink):
    handler, port = sink
    addresses = {f"a{number}@example.com": name for number, name in enumerate(shapes.signed())}
    with Postfix(routes={"*": port}) as postfix:
        with smtplib.SMTP("127.0.0.1", postfix.port) as client:
            for address, name in addresses.items():
                client.sendmail(SENDER, address, shapes.signed()[name])
            client.sendmail(SENDER, "nobody@example.com", shapes.signed()["both"])
            with pytest.raises(smtplib.SMTPDataError):
                client.sendmail(SENDER, "a@example.com", b"Subject: x\r\n\r\nbare\n.\n")
        expected = {*addresses, SENDER}
        wait_for(lambda: handler.received.keys() >= expected, seconds=WAIT_SECONDS, what="all messages and the bounce")
        assert postfix.queue() == []
    for address, name in addresses.items():
        received = handler.received[address]
        added = received.removesuffix(shapes.signed()[name])
        assert added.startswith(b"Received: ")
        assert b"\r\nDKIM" not in added
        assert is_verified_by_dkimpy(received)
    assert b"Action: failed" in handler.received[SENDER]
