"""Fixtures of the inbound tests: sent email, and a running inbound server to send reports to."""

import asyncio
import contextlib
import smtplib
import socket
import threading
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from core.lib.ids import to_uuid
from core.lib.mail.smtp_limits import SessionLimits
from core.lib.network.listening import open_sockets
from emails.models import Recipient
from emails.sending.outcomes import SendResult, record_results
from emails.sending.return_path import return_path
from interfaces.inbound.server import serve
from tests.emails.builders import SENT, accept, claim_entries
from tests.event_loops import close_loop
from tests.stack.stack import wait_for

DOMAIN = "bounce.localhost"


def claimed_recipient(workspace, address="ada@example.com"):
    """Accept an email and claim it; return the recipient and the claim."""
    accept(workspace, address)
    (claim,) = claim_entries(100)
    return Recipient.objects.get(id=claim.recipient_id), claim


def sent_recipient(workspace, address="ada@example.com", outcome=SENT) -> Recipient:
    """Return a recipient whose message a remote host has accepted."""
    recipient, claim = claimed_recipient(workspace, address)
    record_results([SendResult(claim, outcome)])
    recipient.refresh_from_db()
    return recipient


def return_path_of(recipient) -> str:
    return return_path(to_uuid(recipient.id), domain=DOMAIN)


@dataclass
class ServerPort:
    """A listening inbound server. open_session() yields a raw session that has read the greeting."""

    number: int

    def send(self, source: bytes, to: str, *, sender: str = "<>"):
        with smtplib.SMTP("127.0.0.1", self.number, timeout=10) as client:
            client.ehlo("mx.example.com")
            client.mail(sender)
            code, text = client.rcpt(to)
            return (code, text) if code != 250 else client.data(source)

    @contextlib.contextmanager
    def open_session(self, *, greeted=True) -> Iterator["RawSession"]:
        with socket.create_connection(("127.0.0.1", self.number), timeout=10) as connection:
            session = RawSession(connection)
            session.read()
            if greeted:
                session.exchange(b"EHLO mx.example.com\r\n")
            yield session


@dataclass
class RawSession:
    """An SMTP session over a raw socket."""

    connection: socket.socket

    def exchange(self, data: bytes) -> str:
        """Return the reply to a command, empty once the server has closed the connection."""
        with contextlib.suppress(ConnectionError):
            self.connection.sendall(data)
        return self.read()

    def read(self) -> str:
        """Return the next reply, empty once the connection is closed."""
        text = b""
        with contextlib.suppress(ConnectionError):
            while not text.endswith(b"\r\n") or text.splitlines()[-1][3:4] == b"-":
                piece = self.connection.recv(65_536)
                if not piece:
                    break
                text += piece
        return text.decode()

    def read_all(self) -> str:
        """Return everything sent until the connection is closed."""
        text = b""
        with contextlib.suppress(ConnectionError):
            while piece := self.connection.recv(65_536):
                text += piece
        return text.decode()


@contextlib.contextmanager
def run_inbound(limits: SessionLimits | None = None) -> Iterator[ServerPort]:
    sockets = open_sockets("127.0.0.1", 0, setting="INBOUND_PORT")
    port = sockets[0].getsockname()[1]
    with run_in_thread(serve(sockets, limits=limits)):
        wait_for(lambda: is_open(port), seconds=60, what="the inbound server listens")
        yield ServerPort(port)


@contextlib.contextmanager
def run_in_thread(serving: Coroutine[Any, Any, None]) -> Iterator[None]:
    """Run a server in an event loop of another thread until the context ends."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(serving)

    def run():
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        close_loop(loop)


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), smtplib.SMTP("127.0.0.1", port):
        return True
    return False
