"""Benchmark of SMTP submission with 32 open sessions, compared with POST /v1/emails/send in the same run.

    .venv/bin/python -m benchmarks.submission

Both accept the same email in one process per core; nothing is delivered. Requires wrk, and DATABASE_URL
of a server on which databases may be created.
"""

import asyncio
import base64
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.accept import BODY, CONCURRENCY, SECONDS, measure
from benchmarks.figures import record_figure
from tests.stack.stack import Stack, running_stack

ROUNDS = 3
COUNT = "SELECT count(*) FROM emails_email"
HEADER = f"From: {BODY['from']}\r\nTo: ada@example.com\r\nSubject: {BODY['subject']}\r\nContent-Type: text/html\r\n\r\n"
# Lines of a message have at most 998 characters.
MESSAGE = (HEADER + str(BODY["html"]).replace("</p>", "</p>\r\n") + ".\r\n").encode()
ENVELOPE = b"MAIL FROM:<hello@demo.example>\r\nRCPT TO:<ada@example.com>\r\nDATA\r\n"


def main() -> None:
    # A request that waits is not refused: a session waits as well.
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder), WEB_MAX_WAIT_MS="60000") as stack:
        ratios, rates = [], []
        for _ in range(ROUNDS):
            api = measure(stack, Path(folder))["rate"]
            rates.append(measure_submission(stack))
            ratios.append(rates[-1] / api)
            print(f"submission {rates[-1]:.0f}/s, API {api:.0f}/s")
        ratio = statistics.median(ratios)
        print(f"ratio {ratio:.2f} (at least 0.8)")
        record_figure("emails submitted over SMTP in 32 sessions", statistics.median(rates), "/s")
        record_figure("emails submitted over SMTP, ratio to requests to the API", ratio, at_least=0.8)


def measure_submission(stack: Stack) -> float:
    """Return the emails accepted per second."""
    stack.start("submission", SUBMISSION_CONCURRENCY="0")
    asyncio.run(submit_for(stack, seconds=2))
    before, started = stack.query(COUNT)[0][0], time.perf_counter()
    asyncio.run(submit_for(stack, seconds=SECONDS))
    rate = (stack.query(COUNT)[0][0] - before) / (time.perf_counter() - started)
    stack.kill("submission")
    return float(rate)


async def submit_for(stack: Stack, *, seconds: float) -> None:
    """Send messages in all sessions, each after the reply to the one before, as a pool of connections does."""
    until = time.monotonic() + seconds
    await asyncio.gather(*(submit_in_session(stack, until) for _ in range(CONCURRENCY)))


async def submit_in_session(stack: Stack, until: float) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(stack.environment["SUBMISSION_PORTS"]))
    await reader.readline()
    await exchange(reader, writer, b"EHLO app.example\r\n", b"250 ")
    await exchange(reader, writer, f"AUTH PLAIN {plain_credentials(stack.key)}\r\n".encode(), b"235")
    while time.monotonic() < until:
        await exchange(reader, writer, ENVELOPE, b"354")
        await exchange(reader, writer, MESSAGE, b"250 2.0.0")
    writer.close()


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes, last: bytes) -> None:
    """Send data and read replies until the expected one."""
    writer.write(data)
    while not (line := await reader.readline()).startswith(last):
        assert line[:1] in b"23", line


def plain_credentials(key: str) -> str:
    return base64.b64encode(f"\0postrider\0{key}".encode()).decode()


if __name__ == "__main__":
    main()
