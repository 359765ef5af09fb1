"""Memory of the real inbound server and workers while large messages arrive, and afterwards (25 MiB: long tests)."""

import base64
import logging
import random
import smtplib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.stack.stack import Stack, running_stack, wait_for
from tools.benchmarks.footprint import read_usage

log = logging.getLogger(__name__)
pytestmark = pytest.mark.stack

MIB = 1024 * 1024
# Room for ten messages.
MESSAGES_IN_BUDGET = 10
MORE_BYTES = 100 * 10**6
# Ten sessions of each address and of each workspace.
SESSIONS, ADDRESSES, WORKSPACES = 50, 5, 10
SECONDS = 480
CREATE_WORKSPACES = f"""
from receiving.arrival.shared_addresses import shared_address
from tests.conftest import make_account
print(*[shared_address(make_account(f"w{{number}}").workspace) for number in range({WORKSPACES})])
"""
# Each line begins with a dot that is doubled for the transfer.
DOTTED = b"." + b"x" * 996 + b"\r\n"
PLAIN = b"x" * 998 + b"\r\n"
PIECE_LINES = 1000


@pytest.mark.parametrize("message_bytes", [5 * MIB, pytest.param(25 * MIB, marks=pytest.mark.long)])
def test_fifty_large_messages_stay_within_the_budget(tmp_path, message_bytes):
    budget_bytes = MESSAGES_IN_BUDGET * message_bytes
    settings = {"RECEIVING_MAX_BYTES": str(message_bytes), "RECEIVING_MEMORY_BYTES": str(budget_bytes)}
    with running_stack(tmp_path, **settings) as stack:
        stack.start("inbound")
        check_memory(stack, message_bytes=message_bytes, budget_bytes=budget_bytes)


@pytest.mark.parametrize("message_bytes", [10 * MIB, pytest.param(25 * MIB, marks=pytest.mark.long)])
def test_memory_is_given_back_after_large_messages(tmp_path, message_bytes):
    """Three rounds of eight messages leave less than two of them in the inbound server and in the workers together."""
    with running_stack(tmp_path, WORKER_CONCURRENCY="2") as stack:
        stack.start("inbound", "workers")
        addresses = stack.manage("shell", "--verbosity", "0", "-c", CREATE_WORKSPACES).split()[-WORKSPACES:]
        pids = [stack.processes[name].pid for name in ("inbound", "workers")]
        deliver_round(stack, addresses, 0, size=1000)
        idle = private_mib(pids)
        for number in range(1, 4):
            deliver_round(stack, addresses, number, size=message_bytes)
        wait_for(lambda: private_mib(pids) - idle < 2 * message_bytes / MIB, seconds=30, what="memory is given back")
        log.info("idle %.0f MiB, %.0f MiB afterwards", idle, private_mib(pids))


def deliver_round(stack: Stack, addresses: list[str], number: int, *, size: int) -> None:
    """Deliver eight messages with a file, and wait until they are read."""
    line = base64.b64encode(bytes(range(57))) + b"\r\n"
    for index in range(8):
        head = f"Subject: {number} {index}\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        source = head.encode() + line * ((size - len(head)) // len(line))
        with smtplib.SMTP("127.0.0.1", int(stack.environment["INBOUND_PORT"]), timeout=SECONDS) as client:
            client.sendmail("a@host.example", [addresses[index]], source)
    unread = "SELECT count(*) FROM receiving_message WHERE read_at IS NULL"
    wait_for(lambda: stack.query(unread) == [(0,)], seconds=SECONDS, what="the messages are read")


def private_mib(pids: list[int]) -> float:
    return sum(usage.pss_mb for usage in read_usage(pids).values())


def check_memory(stack: Stack, *, message_bytes: int, budget_bytes: int) -> None:
    addresses = stack.manage("shell", "--verbosity", "0", "-c", CREATE_WORKSPACES).split()[-WORKSPACES:]
    # Modules are loaded and connections open.
    for number in range(8):
        assert Delivery(stack, number, addresses, threading.Barrier(1), size=1000).run() == Counter(stored=1)
    idle, barrier = memory(stack), threading.Barrier(SESSIONS)
    deliveries = [Delivery(stack, number, addresses, barrier, size=message_bytes) for number in range(SESSIONS)]
    reset_peak(stack)
    with ThreadPoolExecutor(SESSIONS) as pool:
        counts = sum(pool.map(Delivery.run, deliveries), Counter())
    grown = memory(stack, "VmHWM") - idle
    log.info("idle %.0f MiB, %.0f MiB more, replies %s", idle / MIB, grown / MIB, dict(counts))
    assert counts["stored"] == SESSIONS
    assert counts["452 4.3.1"] > 0
    assert counts.keys() == {"stored", "452 4.3.1"}
    assert budget_bytes / 2 < grown < budget_bytes + MORE_BYTES
    rows = "SELECT count(*), sum(size) FROM receiving_message WHERE size > 1000000"
    ((count, total),) = stack.query(rows)
    assert count == SESSIONS
    assert total > SESSIONS * (message_bytes - len(DOTTED))
    # What was counted is released: the next message finds room at once. The system may keep freed memory.
    log.info("%.0f MiB more afterwards", (memory(stack) - idle) / MIB)
    for number in range(SESSIONS, SESSIONS + WORKSPACES):
        assert Delivery(stack, number, addresses, threading.Barrier(1), size=message_bytes).run() == Counter(stored=1)
    assert memory(stack, "VmHWM") - idle < budget_bytes + MORE_BYTES


class Delivery:
    """One session that delivers a message, and repeats it while the inbound server has no memory for it.

    Mail hosts announce the size. Two of fifty do not, and are refused when their bytes have arrived.
    """

    def __init__(
        self, stack: Stack, number: int, addresses: list[str], barrier: threading.Barrier, *, size: int
    ) -> None:
        self._port = int(stack.environment["INBOUND_PORT"])
        self._number = number
        self._to = addresses[number % len(addresses)]
        self._barrier = barrier
        self._head = f"From: a@host.example\r\nSubject: {number} of {size}\r\n\r\n".encode()
        self._line = DOTTED if number % 4 < 2 else PLAIN
        self._sent_line = b"." + self._line if self._line.startswith(b".") else self._line
        self._lines = (size - len(self._head)) // len(self._line)
        self._random = random.Random(number)

    def run(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        source_address = (f"127.0.1.{1 + self._number % ADDRESSES}", 0)
        deadline = time.monotonic() + SECONDS
        with smtplib.SMTP("127.0.0.1", self._port, timeout=SECONDS, source_address=source_address) as client:
            client.ehlo("host.example")
            self._begin(client)
            self._barrier.wait(SECONDS)
            while not counts["stored"]:
                counts[self._send(client)] += 1
                assert time.monotonic() < deadline, counts
                if not counts["stored"]:
                    time.sleep(self._random.uniform(0.2, 2.0))
                    self._begin(client)
        return counts

    def _begin(self, client: smtplib.SMTP) -> None:
        size = len(self._head) + self._lines * len(self._line)
        options = [f"SIZE={size}"] if self._number % 25 else []
        assert client.mail("a@host.example", options)[0] == 250
        assert client.rcpt(self._to)[0] == 250

    def _send(self, client: smtplib.SMTP) -> str:
        """Return `stored`, or the reply without its text."""
        reply = client.docmd("DATA")
        if reply[0] == 354:
            client.sock.sendall(self._head)
            for piece in self._pieces():
                client.sock.sendall(piece)
            client.sock.sendall(b".\r\n")
            reply = client.getreply()
        return "stored" if reply[0] == 250 else f"{reply[0]} {reply[1].decode().split()[0]}"

    def _pieces(self) -> Iterator[bytes]:
        """Yield the lines as they are sent; the test has not all messages in memory either."""
        for start in range(0, self._lines, PIECE_LINES):
            yield self._sent_line * min(PIECE_LINES, self._lines - start)


def memory(stack: Stack, field: str = "VmRSS") -> int:
    """Return the bytes of the process's memory now, or its peak."""
    status = Path(f"/proc/{stack.processes['inbound'].pid}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024


def reset_peak(stack: Stack) -> None:
    Path(f"/proc/{stack.processes['inbound'].pid}/clear_refs").write_text("5")
