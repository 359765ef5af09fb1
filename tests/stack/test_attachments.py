"""Emails with large attachments at once: accepted and sent, and the processes give the memory back."""

import base64
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.stack.limits import private_bytes
from tests.stack.stack import Stack, wait_for

pytestmark = pytest.mark.stack
CLIENTS = 20
ROUNDS = 3
MAX_GROWTH_BYTES = 80_000_000


def test_web_gives_the_memory_of_large_attachments_back(stack: Stack):
    stack.start("web", WEB_CONCURRENCY="2")
    send_together(stack, b"")
    before = private_bytes(stack, "web")
    statuses = send_together(stack, os.urandom(5_000_000))
    assert set(statuses) <= {202, 503}
    assert statuses.count(202) >= CLIENTS // 4
    assert private_bytes(stack, "web") - before < MAX_GROWTH_BYTES


def test_workers_give_the_memory_of_large_attachments_back(stack: Stack):
    stack.start("inbox", "web", WEB_CONCURRENCY="2")
    stack.start("workers", WORKER_CONCURRENCY="2")
    send_and_wait(stack, b"")
    before = private_bytes(stack, "workers")
    for _ in range(ROUNDS):
        send_and_wait(stack, os.urandom(5_000_000))
    assert private_bytes(stack, "workers") - before < MAX_GROWTH_BYTES


def send_and_wait(stack: Stack, data: bytes) -> None:
    assert 202 in send_together(stack, data)
    wait_for(stack.all_delivered, seconds=120, what="all emails are delivered")


def send_together(stack: Stack, data: bytes) -> list[int]:
    file = {"filename": "a.bin", "content": base64.b64encode(data).decode()}
    with ThreadPoolExecutor(CLIENTS) as clients:
        return list(clients.map(lambda _: stack.send(attachments=[file]).status, range(CLIENTS)))
