"""Benchmark of POST /v1/emails/batch with 500 recipients, one request after another.

    .venv/bin/python -m tools.benchmarks.batch

Requires DATABASE_URL of a server on which databases may be created.
"""

import statistics
import tempfile
from pathlib import Path
from typing import Any

from tests.stack.stack import Stack, running_stack
from tools.benchmarks.figures import record_figure
from tools.benchmarks.sizes import size

ROUNDS = size(40, smoke=3)
TEMPLATE = {
    "name": "Receipt",
    "alias": "receipt",
    "subject": "Your receipt, {{name}}",
    "htmlContent": "<p>Hello {{name}},</p>" + "<p>thank you for your order {{order.id}}.</p>" * 3 + "<p>Bye</p>" * 100,
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        stack.start("web", WEB_CONCURRENCY="1")
        stack.call("POST", "/templates", TEMPLATE)
        seconds = sorted(measure(stack))[: ROUNDS - 1]
        print(f"500 recipients: p50 {statistics.median(seconds) * 1000:.0f} ms, slowest {max(seconds) * 1000:.0f} ms")
        record_figure("p50 of a batch of 500", statistics.median(seconds) * 1000, "ms", at_most=100)


def measure(stack: Stack) -> list[float]:
    replies = [stack.call("POST", "/emails/batch", batch_body(number)) for number in range(ROUNDS)]
    assert {reply.status for reply in replies} == {202}
    return [reply.seconds for reply in replies]


def batch_body(number: int) -> dict[str, Any]:
    recipients = [
        {"to": f"user{number}-{index}@example.com", "templateData": {"name": f"User {index}", "order": {"id": index}}}
        for index in range(500)
    ]
    return {"from": "hello@demo.example", "templateId": "receipt", "recipients": recipients}


if __name__ == "__main__":
    main()
