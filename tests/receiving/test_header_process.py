"""The process that reads the header of a message which ended its workers: its result, and its limits."""

import sys

import pytest

from receiving.reading import header_process
from receiving.reading.header_process import read_header_apart
from receiving.reading.message import read_header
from tests.receiving.builders import PLAIN, with_field
from tests.receiving.test_webhook_formats import SOURCE
from tests.rows import each

pytestmark = pytest.mark.full

# Runs the module with another reader, as a header could make it behave. {seconds}: of processor time.
PROGRAM = """
import os, sys, time
from receiving.reading import header_process
header_process.LIMITS[header_process.resource.RLIMIT_CPU] = {seconds}
def read_header(header, *, envelope_from):
    {behaviour}
header_process.read_header = read_header
header_process.main()
"""


@each(("source", "sender"), [
    (PLAIN, "ada@example.com"), (PLAIN, "äöü@example.com"), (SOURCE, ""), (b"", "ada@example.com"), (PLAIN[:40], ""),
    (with_field("Auto-Submitted: auto-replied"), "ada@example.com"), (b"\0\xff\n\r: \xed\xa0\x80", "äöü@example.com"),
])  # fmt: skip
def test_it_reads_a_header_as_a_worker_does(source, sender):
    assert read_header_apart(source, envelope_from=sender) == read_header(source, envelope_from=sender)


@each("behaviour", [
    "os.kill(os.getpid(), 11)", "while True: pass", "return b'x' * header_process.MEMORY_BYTES", "sys.exit(0)",
    "sys.setrecursionlimit(10**9); f = lambda: f(); f()",
    "sys.stdout.write('x' * header_process.MAX_OUTPUT_BYTES); sys.exit(0)", "sys.stdout.write('[1]'); sys.exit(0)",
    "open('/tmp/x-of-a-test', 'w').write('x')",
])  # fmt: skip
def test_a_header_that_ends_the_process_has_no_reading(monkeypatch, behaviour):
    program = PROGRAM.format(behaviour=behaviour, seconds=header_process.CPU_SECONDS // 2)
    monkeypatch.setattr(header_process, "COMMAND", [sys.executable, "-c", program])
    assert read_header_apart(PLAIN, envelope_from="") is None


def test_a_process_that_waits_is_killed(monkeypatch):
    monkeypatch.setattr(header_process, "TIMEOUT_SECONDS", 1.0)
    monkeypatch.setattr(header_process, "COMMAND", [sys.executable, "-c", "import time; time.sleep(600)"])
    assert read_header_apart(PLAIN, envelope_from="") is None
