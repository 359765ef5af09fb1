"""An attack on received email: hostile messages to one workspace, from a separate process.

    python -m tools.benchmarks.attacks.receiving PORT ADDRESS

Sends the messages of tests/receiving/hostile.py in a loop until it is ended.
"""

import contextlib
import itertools
import os
import smtplib
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.receiving.hostile import MESSAGES
from tests.stack.stack import REPOSITORY, Stack

SESSIONS = 4
# Different networks, each of which may send some messages an hour.
NETWORK = "127.0.67"
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
    address = stack.manage("shell", "--verbosity", "0", "-c", CREATE).split()[-1]
    command = [sys.executable, "-m", "tools.benchmarks.attacks.receiving", stack.environment["INBOUND_PORT"], address]
    environment = {**stack.environment, "DJANGO_SETTINGS_MODULE": "config.settings"}
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE)
    try:
        assert process.stdout
        assert process.stdout.readline(), "the attack has ended before its first message was delivered"
        yield
    finally:
        process.kill()
        process.wait()


ATTACKS = {"hostile messages": hostile_messages}


def main() -> None:
    port, address = int(sys.argv[1]), sys.argv[2]
    threads = [threading.Thread(target=_deliver, args=[port, address, number]) for number in range(SESSIONS)]
    for thread in threads:
        thread.start()


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
