"""Fixtures of the submission tests: a running server, and clients of it."""

import asyncio
import contextlib
import smtplib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.lib.mail.smtp_limits import SessionLimits
from interfaces.submission.server import open_listeners, serve
from tests.event_loops import close_loop
from tests.interfaces.inbound.fixtures import ServerPort
from tests.stack.limits import PATIENT_SECONDS
from tests.stack.stack import Stack, free_port

MESSAGE = b"From: Alice <hi@alice.example>\r\nTo: ada@example.com\r\nSubject: Hello\r\n\r\nHello Ada\r\n"


@dataclass
class SubmissionPort(ServerPort):
    """A listening server. key: the password of its clients. call: calls a function in the event loop of the server."""

    key: str = ""
    call: Callable[..., object] = print

    @contextlib.contextmanager
    def client(self, *, key: str | None = None) -> Iterator[smtplib.SMTP]:
        """Yield a client that has signed in."""
        with smtplib.SMTP("127.0.0.1", self.number, timeout=20) as client:
            client.login("postrider", key or self.key)
            yield client

    def submit(self, source: bytes = MESSAGE, *to: str, sender: str = "bounces@app.example") -> tuple[int, str]:
        """Send one message; return the code and the text of the first refusal or of the last reply."""
        with self.client() as client:
            client.mail(sender)
            for address in to or ("ada@example.com",):
                code, text = client.rcpt(address)
                if code != 250:
                    return code, text.decode()
            code, text = client.data(source)
            return code, text.decode()


@contextlib.contextmanager
def connected(stack: Stack) -> Iterator[smtplib.SMTP]:
    """Yield a client of a running stack that has signed in."""
    with smtplib.SMTP("127.0.0.1", int(stack.environment["SUBMISSION_PORTS"]), timeout=PATIENT_SECONDS) as client:
        client.login("x", stack.key)
        yield client


def submit(stack: Stack, source: bytes) -> tuple[int, str]:
    """Send one message to a running stack; return the code and the text of the last reply."""
    with connected(stack) as client:
        client.mail("a@b.example")
        client.rcpt("ada@example.com")
        code, text = client.data(source)
    return code, text.decode()


def begin_message(client: smtplib.SMTP) -> None:
    client.mail("a@b.example")
    client.rcpt("ada@example.com")
    assert client.docmd("DATA")[0] == 354


def write_certificate(settings, authority):
    issued = authority.issue_cert("localhost")
    issued.private_key_pem.write_to_path(settings.SUBMISSION_TLS_KEY)
    issued.cert_chain_pems[0].write_to_path(settings.SUBMISSION_TLS_CERT)
    return issued


@contextlib.contextmanager
def run_submission(settings, *, key: str = "", limits: SessionLimits | None = None) -> Iterator[SubmissionPort]:
    """Run a server in a thread, on free ports."""
    settings.SUBMISSION_HOST = "127.0.0.1"
    settings.SUBMISSION_PORTS, settings.SUBMISSION_TLS_PORTS = [free_port()], [free_port()]
    (listeners,), loop = open_listeners(), asyncio.new_event_loop()
    task = loop.create_task(serve(listeners, limits=limits))

    def run():
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        # The greeting comes once the server has started; connections before it wait.
        smtplib.SMTP("127.0.0.1", settings.SUBMISSION_PORTS[0], timeout=20).close()
        yield SubmissionPort(settings.SUBMISSION_PORTS[0], key, loop.call_soon_threadsafe)
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        close_loop(loop)
