"""Benchmark of the processor time of a send through each compatibility API, compared with POST /v1/emails/send.

    .venv/bin/python -m tools.benchmarks.compat [rounds]

The same email is sent through each API in turn, on one connection to one web process, whose processor time is counted;
that of PostgreSQL is not. Nothing is delivered. Requires Linux, and DATABASE_URL of a server on which databases may be
created.
"""

import http.client
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.stack.stack import Stack, running_stack
from tools.benchmarks.accept import BODY
from tools.benchmarks.figures import record_figure
from tools.benchmarks.footprint import read_usage, total
from tools.benchmarks.sizes import size

ROUNDS = size(7, smoke=1)
REQUESTS = size(500, smoke=50)
WARM_UP_REQUESTS = size(100, smoke=5)
# The largest processor time of a send by API, in percent of the native one; some have no limit.
MAX_PERCENT = {"resend": 115, "postmark": None, "sendgrid": None}


@dataclass(frozen=True)
class SendRequest:
    """A request that sends the email of tools.benchmarks.accept through one API."""

    path: str
    body: dict[str, Any]
    key_header: str = "Authorization"


SENDER, RECIPIENT = BODY["from"], "ada@example.com"
CONTENT = {"type": "text/html", "value": BODY["html"]}
REQUESTS_BY_API = {
    "native": SendRequest("/v1/emails/send", BODY),
    "resend": SendRequest("/compat/resend/emails", BODY),
    "postmark": SendRequest(
        "/compat/postmark/email",
        {"From": SENDER, "To": RECIPIENT, "Subject": BODY["subject"], "HtmlBody": BODY["html"]},
        key_header="X-Postmark-Server-Token",
    ),
    "sendgrid": SendRequest(
        "/compat/sendgrid/v3/mail/send",
        {
            "from": {"email": SENDER},
            "personalizations": [{"to": [{"email": RECIPIENT}]}],
            "subject": BODY["subject"],
            "content": [CONTENT],
        },
    ),
}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        stack.start("web", WEB_CONCURRENCY="1")
        for request in REQUESTS_BY_API.values():
            send_all(stack, request, count=WARM_UP_REQUESTS)
        measured = [{name: measure(stack, request) for name, request in REQUESTS_BY_API.items()} for _ in range(rounds)]
    native = statistics.median(one["native"] for one in measured)
    record_figure("processor time of a send through /v1", native * 1000, "ms")
    for name, limit in MAX_PERCENT.items():
        percent = 100 * statistics.median(one[name] / one["native"] for one in measured)
        print(f"{name}: {percent:.1f} % of the processor time of a native send")
        record_figure(f"processor time of a send through {name}, compared with /v1", round(percent), "%", at_most=limit)


def measure(stack: Stack, request: SendRequest) -> float:
    """Return the processor seconds that web takes for one request."""
    pid = stack.processes["web"].pid
    before = total(read_usage([pid]))
    send_all(stack, request, count=REQUESTS)
    return (total(read_usage([pid])) - before) / REQUESTS


def send_all(stack: Stack, request: SendRequest, *, count: int) -> None:
    """Send a number of requests one after the other. Raises AssertionError if one is refused."""
    key = f"Bearer {stack.key}" if request.key_header == "Authorization" else stack.key
    headers = {request.key_header: key, "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", int(stack.environment["PORT"]), timeout=60)
    for _ in range(count):
        connection.request("POST", request.path, json.dumps(request.body), headers)
        response = connection.getresponse()
        answer = response.read()
        assert response.status in {200, 202}, answer
    connection.close()


if __name__ == "__main__":
    main()
