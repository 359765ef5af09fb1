"""Attacks on received email, each from a separate process that goes on until it is ended.

    python -m tools.benchmarks.attacks.receiving hostile|slow PORT ADDRESS

hostile: the messages of tests/receiving/hostile.py. slow: messages that arrive as slowly as the server allows, in all
sessions that it gives to some addresses.
"""

import contextlib
import itertools
import os
import smtplib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.receiving.hostile import MESSAGES
from tests.stack.stack import REPOSITORY, Stack

SESSIONS = 4
# Different networks, each of which may send some messages an hour.
NETWORK = "127.0.67"
SLOW_NETWORK = "127.0.69"
SLOW_ADDRESSES, SESSIONS_OF_ADDRESS = 45, 10
SLOW_SECONDS = 1.0
LINE = b"x" * 1_198 + b"\r\n"
OK, BEGIN = 250, 354
CREATE = """
from uuid import uuid4
from receiving.arrival.shared_addresses import shared_address
from core.workspaces.models import User
from core.workspaces.services import create_workspace
owner = User.objects.create(email=f"{uuid4().hex}@attacker.example")
print(shared_address(create_workspace(name="attacker", plan="enterprise", owner=owner)))
"""


@contextmanager
def hostile_messages(stack: Stack) -> Iterator[None]:
    """Deliver hostile messages to a workspace in four sessions, as fast as they are accepted."""
    with _attack(stack, "hostile"):
        yield


@contextmanager
def slow_messages(stack: Stack) -> Iterator[None]:
    """Hold sessions of the inbound server from 45 addresses, and open new ones for those that end."""
    with _attack(stack, "slow"):
        yield


@contextmanager
def _attack(stack: Stack, name: str) -> Iterator[None]:
    """Run an attack on a new workspace, which begins with its first line of output."""
    address = stack.manage("shell", "--verbosity", "0", "-c", CREATE).split()[-1]
    program = "tools.benchmarks.attacks.receiving"
    command = [sys.executable, "-m", program, name, stack.environment["INBOUND_PORT"], address]
    environment = {**stack.environment, "DJANGO_SETTINGS_MODULE": "config.settings"}
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE)
    try:
        assert process.stdout
        assert process.stdout.readline(), "the attack has ended before its first message was delivered"
        yield
    finally:
        process.kill()
        process.wait()


ATTACKS = {"hostile messages": hostile_messages, "slow messages": slow_messages}


def main() -> None:
    name, port, address = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    act, count = (_deliver, SESSIONS) if name == "hostile" else (_hold_sessions, SLOW_ADDRESSES)
    threads = [threading.Thread(target=act, args=[port, address, number]) for number in range(count)]
    for thread in threads:
        thread.start()


def _hold_sessions(port: int, _address: str, number: int) -> None:
    """Hold as many sessions of one address as the server gives, each with an unfinished message to postmaster.

    Of a workspace, they would use up its share only.
    """
    source_address = (f"{SLOW_NETWORK}.{1 + number}", 0)
    held: list[smtplib.SMTP] = []
    while True:
        with contextlib.suppress(OSError, smtplib.SMTPException):
            while len(held) < SESSIONS_OF_ADDRESS:
                held.append(_begin_message(port, source_address))
        print(f"{len(held)} sessions", flush=True)
        held = [client for client in held if _send_line(client)]
        time.sleep(SLOW_SECONDS)


def _begin_message(port: int, source_address: tuple[str, int]) -> smtplib.SMTP:
    client = smtplib.SMTP("127.0.0.1", port, timeout=5, source_address=source_address)
    client.ehlo()
    client.mail("a@attacker.example")
    if client.rcpt("postmaster")[0] != OK or client.docmd("DATA")[0] != BEGIN:
        client.close()
        raise smtplib.SMTPServerDisconnected
    return client


def _send_line(client: smtplib.SMTP) -> bool:
    """Send the least that the server demands in a second while it is not crowded; return whether it may go on."""
    assert client.sock
    try:
        client.sock.sendall(LINE)
        # An answer is the end of the session.
        client.sock.recv(100, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True
    except OSError:
        pass
    client.close()
    return False


def _deliver(port: int, address: str, number: int) -> None:
    names = [*MESSAGES]
    for turn in itertools.count(number * len(names) // SESSIONS):
        # Never the same message, which would not be stored twice.
        source = f"X-Turn: {number} {turn} {os.getpid()}\r\n".encode() + MESSAGES[names[turn % len(names)]]()
        source_address = (f"{NETWORK}.{1 + turn % 250}", 0)
        with (
            contextlib.suppress(OSError, smtplib.SMTPException),
            smtplib.SMTP("127.0.0.1", port, timeout=60, source_address=source_address) as client,
        ):
            client.sendmail("a@attacker.example", [address], source)
            print("delivered", flush=True)


if __name__ == "__main__":
    main()
