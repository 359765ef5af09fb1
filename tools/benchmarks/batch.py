"""Benchmark of POST /v1/emails/batch with 500 recipients, one request after another, in one and in eleven languages.

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
LANGUAGES = ("bg", "cs", "da", "de", "es", "fi", "fr", "it", "nl", "pl", "sv")
TRANSLATED = {
    **TEMPLATE,
    "alias": "translated",
    "locales": {
        language: {"subject": f"{language} {{{{name}}}}", "htmlContent": f"<p>{language}</p>{TEMPLATE['htmlContent']}"}
        for language in LANGUAGES
    },
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        stack.start("web", WEB_CONCURRENCY="1")
        for template in (TEMPLATE, TRANSLATED):
            assert stack.call("POST", "/templates", template).status == 201
        one, several = measure(stack)
        print(f"500 recipients: p50 {statistics.median(one) * 1000:.0f} ms, slowest {max(one) * 1000:.0f} ms")
        print(f"500 recipients in {len(LANGUAGES)} languages: p50 {statistics.median(several) * 1000:.0f} ms")
        record_figure("p50 of a batch of 500", statistics.median(one) * 1000, "ms", at_most=100)
        ratio = statistics.median(several) / statistics.median(one)
        record_figure("batch in eleven languages to one in one language", ratio, "", at_most=1.3)


def measure(stack: Stack) -> tuple[list[float], list[float]]:
    """Return the seconds of batches in one language and in eleven, which alternate, without the slowest of each."""
    bodies = [body for number in range(ROUNDS) for body in (batch_body(number), translated_body(number))]
    replies = [stack.call("POST", "/emails/batch", body) for body in bodies]
    assert {reply.status for reply in replies} == {202}
    seconds = [reply.seconds for reply in replies]
    return sorted(seconds[::2])[: ROUNDS - 1], sorted(seconds[1::2])[: ROUNDS - 1]


def batch_body(number: int) -> dict[str, Any]:
    recipients = [
        {"to": f"user{number}-{index}@example.com", "templateData": {"name": f"User {index}", "order": {"id": index}}}
        for index in range(500)
    ]
    return {"from": "hello@demo.example", "templateId": "receipt", "recipients": recipients}


def translated_body(number: int) -> dict[str, Any]:
    body = batch_body(number)
    for index, recipient in enumerate(body["recipients"]):
        recipient["locale"] = LANGUAGES[index % len(LANGUAGES)]
    return {**body, "templateId": "translated"}


if __name__ == "__main__":
    main()
