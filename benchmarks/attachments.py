"""Benchmark of attachments: twenty emails with 5 MB each at once, their responses and the memory of web.

    .venv/bin/python -m benchmarks.attachments [rounds]

The clients of a round start together, and send an idempotency key as the client libraries do. Requires DATABASE_URL
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

from benchmarks.figures import record_figure
from benchmarks.footprint import read_usage
from tests.stack.stack import Stack, running_stack

ROUNDS = 3
EMAIL = {"from": "hello@demo.example", "to": "ada@example.com", "subject": "Report", "text": "Attached."}
CLIENTS = 20
TIMEOUT_SECONDS = 120
FILE_BYTES = 5_000_000
WEB_PROCESSES = 2
# Of all web processes, after the last response.
MAX_GROWTH_MB = 60


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as logs, running_stack(Path(logs), WEB_CONCURRENCY=str(WEB_PROCESSES)) as stack:
        stack.start("web")
        for _ in range(rounds):
            send_together(stack, json.dumps(EMAIL).encode())
        before = memory_mb(stack)
        file = {"filename": "report.pdf", "content": base64.b64encode(os.urandom(FILE_BYTES)).decode()}
        body = json.dumps({**EMAIL, "attachments": [file]}).encode()
        answers = [answer for _ in range(rounds) for answer in send_together(stack, body)]
        after = memory_mb(stack)
    report(answers, before=before, after=after)


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


def memory_mb(stack: Stack) -> float:
    """Return the memory (PSS) of all web processes."""
    return sum(process.pss_mb for process in read_usage([stack.processes["web"].pid]).values())


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
