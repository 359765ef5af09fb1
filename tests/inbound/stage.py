"""What the tests of this room share: mail that has been sent, reports about it, and a receiver to bring them to."""

import asyncio
import contextlib
import smtplib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from emails.models import Recipient
from emails.sending import queue
from emails.sending.outcomes import Result, record
from emails.sending.return_path import return_path
from inbound.protocol import Limits
from inbound.receiver import serve
from tests.emails.sending.test_queue import accept
from tests.stack.stack import free_port, wait_for

SENT = DeliveryOutcome(DeliveryStatus.SENT, Reply(250, "2.0.0 queued"))
DELIVERED = DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "2.0.0 ok"))
DOMAIN = "bounce.localhost"


def claimed(workspace, address="ada@example.com"):
    """Accept an email and claim it; return the recipient and the claim."""
    accept(workspace, address)
    (held,) = queue.claim(100, after=UUID(int=0))
    return Recipient.objects.get(id=held.recipient_id), held


def sent(workspace, address="ada@example.com", outcome=SENT) -> Recipient:
    """Return a recipient whose mail a host has taken."""
    recipient, held = claimed(workspace, address)
    record([Result(held, outcome)])
    recipient.refresh_from_db()
    return recipient


def path_of(recipient) -> str:
    return return_path(recipient.id, domain=DOMAIN)


@dataclass
class Port:
    """A receiver that listens; raw() is a socket that has read the greeting."""

    number: int

    def send(self, source: bytes, to: str, *, sender: str = "<>"):
        with smtplib.SMTP("127.0.0.1", self.number, timeout=10) as client:
            client.ehlo("mx.example.com")
            client.mail(sender)
            code, text = client.rcpt(to)
            return (code, text) if code != 250 else client.data(source)

    @contextlib.contextmanager
    def raw(self, *, greeted=True) -> Iterator["Line"]:
        with socket.create_connection(("127.0.0.1", self.number), timeout=10) as connection:
            line = Line(connection)
            line.read()
            if greeted:
                line.say(b"EHLO mx.example.com\r\n")
            yield line


@dataclass
class Line:
    """A raw session."""

    connection: socket.socket

    def say(self, data: bytes) -> str:
        self.connection.sendall(data)
        return self.read()

    def read(self) -> str:
        """Return the next reply, empty when the other side has hung up."""
        text = b""
        with contextlib.suppress(ConnectionError):
            while not text.endswith(b"\r\n") or text.splitlines()[-1][3:4] == b"-":
                piece = self.connection.recv(65_536)
                if not piece:
                    break
                text += piece
        return text.decode()

    def rest(self) -> str:
        """Return all that is said until the other side hangs up."""
        text = b""
        with contextlib.suppress(ConnectionError):
            while piece := self.connection.recv(65_536):
                text += piece
        return text.decode()


@contextlib.contextmanager
def receiver(limits: Limits | None = None) -> Iterator[Port]:
    """Run a receiver in a thread."""
    port, loop = free_port(), asyncio.new_event_loop()

    def run():
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    task = loop.create_task(serve(host="127.0.0.1", port=port, limits=limits))
    thread = threading.Thread(target=run)
    thread.start()
    try:
        wait_for(lambda: is_open(port), seconds=5, what="the receiver listens")
        yield Port(port)
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), smtplib.SMTP("127.0.0.1", port):
        return True
    return False
