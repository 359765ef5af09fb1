"""Benchmark of attachments: twenty emails with 5 MB each at once, their responses, and the memory of web and workers.

    .venv/bin/python -m tools.benchmarks.attachments [rounds]

The clients of a round start together, and send an idempotency key as the client libraries do. The memory of workers is
measured in a second installation, after they have sent as many emails. Requires DATABASE_URL
of a server on which databases may be created.
"""

import base64
import json
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import urllib3

from tests.stack.stack import Stack, running_stack, wait_for
from tools.benchmarks.figures import record_figure
from tools.benchmarks.footprint import read_usage
from tools.benchmarks.sizes import size

ROUNDS = size(3, smoke=1)
EMAIL = {"from": "hello@demo.example", "to": "ada@example.com", "subject": "Report", "text": "Attached."}
CLIENTS = size(20, smoke=2)
TIMEOUT_SECONDS = 120
FILE_BYTES = 5_000_000
WEB_PROCESSES = WORKER_PROCESSES = 2
# Includes the default wait of the service.
WEB = {"WEB_CONCURRENCY": str(WEB_PROCESSES), "WEB_MAX_WAIT_MS": "1000"}
# Growth of all processes of web, after the last response, and of all workers, after the last delivery.
MAX_GROWTH_MB = 60
DELIVERY_SECONDS = 300


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as logs, running_stack(Path(logs), **WEB) as stack:
        stack.start("web")
        for _ in range(rounds):
            send_together(stack, json.dumps(EMAIL).encode())
        before = memory_mb(stack, "web")
        answers = [answer for _ in range(rounds) for answer in send_together(stack, large_body())]
        after = memory_mb(stack, "web")
    report(answers, before=before, after=after)
    measure_workers(rounds)


def measure_workers(rounds: int) -> None:
    """Measure the memory of workers before and after they have sent large emails."""
    with tempfile.TemporaryDirectory() as logs, running_stack(Path(logs), **WEB) as stack:
        stack.start("inbox", "web")
        stack.start("workers", WORKER_CONCURRENCY=str(WORKER_PROCESSES))
        send_and_wait(stack, json.dumps(EMAIL).encode())
        before = memory_mb(stack, "workers")
        for _ in range(rounds):
            send_and_wait(stack, large_body())
        after = memory_mb(stack, "workers")
    print(f"memory of workers {before:.0f} MB, then {after:.0f} MB")
    record_figure("growth of the workers' memory (PSS) afterwards", after - before, unit="MB", at_most=MAX_GROWTH_MB)


def send_and_wait(stack: Stack, body: bytes) -> None:
    send_together(stack, body)
    wait_for(stack.all_delivered, seconds=DELIVERY_SECONDS, what="all emails are delivered")


def large_body() -> bytes:
    file = {"filename": "report.pdf", "content": base64.b64encode(os.urandom(FILE_BYTES)).decode()}
    return json.dumps({**EMAIL, "attachments": [file]}).encode()


def send_together(stack: Stack, body: bytes) -> list[tuple[int, float]]:
    """Return the status and the seconds of each response."""
    with ThreadPoolExecutor(CLIENTS) as clients:
        return list(clients.map(lambda _: send(stack, body), range(CLIENTS)))


def send(stack: Stack, body: bytes) -> tuple[int, float]:
    headers = {
        "Authorization": f"Bearer {stack.key}",
        "Content-Type": "application/json",
        "Idempotency-Key": str(uuid4()),
    }
    started = time.perf_counter()
    reply = urllib3.request(
        "POST", f"{stack.url}/v1/emails/send", body=body, headers=headers, retries=False, timeout=TIMEOUT_SECONDS
    )
    return reply.status, time.perf_counter() - started


def memory_mb(stack: Stack, name: str) -> float:
    """Return the memory (PSS) of a program and its child processes."""
    return sum(process.pss_mb for process in read_usage([stack.processes[name].pid]).values())


def report(answers: list[tuple[int, float]], *, before: float, after: float) -> None:
    accepted = [seconds for status, seconds in answers if status == 202]
    refused = sum(status == 503 for status, _ in answers)
    print(f"{len(answers)} requests, {len(accepted)} accepted; web memory {before:.0f} MB, then {after:.0f} MB")
    record_figure("emails with 5 MB, 20 at once: accepted", 100 * len(accepted) / len(answers), unit="%")
    record_figure("of them answered 503, overloaded", 100 * refused / len(answers), unit="%")
    record_figure("responses other than 202 and 503", len(answers) - len(accepted) - refused, at_most=0)
    record_figure("seconds until an email is accepted, median", statistics.median(accepted or [0]), unit="s")
    record_figure("seconds until an email is accepted, longest", max(accepted, default=0), unit="s")
    record_figure("growth of web's memory (PSS) afterwards", after - before, unit="MB", at_most=MAX_GROWTH_MB)


if __name__ == "__main__":
    main()
