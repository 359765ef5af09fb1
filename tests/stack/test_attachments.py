"""Emails with large attachments at once: accepted, and web gives the memory back."""

import base64
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.footprint import read_usage
from tests.stack.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.alone]
CLIENTS = 20
MAX_GROWTH_MB = 80


def test_web_gives_the_memory_of_large_attachments_back(stack: Stack):
    stack.start("web", WEB_CONCURRENCY="2")
    send_together(stack, b"")
    before = memory_mb(stack)
    statuses = send_together(stack, os.urandom(5_000_000))
    assert set(statuses) <= {202, 503}
    assert statuses.count(202) >= CLIENTS // 4
    assert memory_mb(stack) - before < MAX_GROWTH_MB


def send_together(stack: Stack, data: bytes) -> list[int]:
    file = {"filename": "a.bin", "content": base64.b64encode(data).decode()}
    with ThreadPoolExecutor(CLIENTS) as clients:
        return list(clients.map(lambda _: stack.send(attachments=[file]).status, range(CLIENTS)))


def memory_mb(stack: Stack) -> float:
    return sum(process.pss_mb for process in read_usage([stack.processes["web"].pid]).values())
