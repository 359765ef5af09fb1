"""Benchmark of SMTP submission with 32 open sessions, compared with POST /v1/emails/send in the same run.

    .venv/bin/python -m tools.benchmarks.submission

Both accept similar emails in one process per core; nothing is delivered. Both servers run all the time and are
measured in turn for a few seconds, so that other programs on the machine affect both alike. Requires wrk, and
DATABASE_URL of a server on which databases may be created.
"""

import asyncio
import base64
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from tests.stack.stack import Stack, running_stack
from tools.benchmarks.accept import BODY, CONCURRENCY, start_web, wrk
from tools.benchmarks.figures import record_figure
from tools.benchmarks.footprint import read_usage, total
from tools.benchmarks.sizes import size

ROUNDS = size(9, smoke=1)
SECONDS = size(4, smoke=1)
COUNT = "SELECT count(*) FROM emails_email"
HEADER = f"From: {BODY['from']}\r\nTo: ada@example.com\r\nSubject: {BODY['subject']}\r\nContent-Type: text/html\r\n\r\n"
# Lines of a message have at most 998 characters.
MESSAGE = (HEADER + str(BODY["html"]).replace("</p>", "</p>\r\n")).encode()
ENVELOPE = b"MAIL FROM:<hello@demo.example>\r\nRCPT TO:<ada@example.com>\r\nDATA\r\n"
numbers = count()


def main() -> None:
    # A request that waits is not refused: a session waits as well.
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder), WEB_MAX_WAIT_MS="60000") as stack:
        script = start_web(stack, Path(folder))
        stack.start("submission", SUBMISSION_CONCURRENCY="0")
        api, submission = AcceptRates(stack, "web"), AcceptRates(stack, "submission")
        for number in range(ROUNDS + 1):
            api.measure(lambda: wrk(stack, script, seconds=SECONDS))
            submission.measure(lambda: asyncio.run(submit_for(stack, seconds=SECONDS)))
            if number == 0:
                # The first round only warms up.
                api.forget()
                submission.forget()
            else:
                print(f"submission {submission}, API {api}", flush=True)
        report(api, submission)


class AcceptRates:
    """Emails per second and processor time per email of the accepting processes, by round."""

    def __init__(self, stack: Stack, process: str) -> None:
        self._stack = stack
        self._pid = stack.processes[process].pid
        self.forget()

    def __str__(self) -> str:
        return f"{self.rates[-1]:.0f}/s with {self.microseconds[-1]:.0f} us each"

    def forget(self) -> None:
        self.rates: list[float] = []
        self.microseconds: list[float] = []

    def measure(self, drive: Callable[[], object]) -> None:
        emails, used, started = self._count(), total(read_usage([self._pid])), time.perf_counter()
        drive()
        seconds, accepted = time.perf_counter() - started, self._count() - emails
        self.rates.append(accepted / seconds)
        self.microseconds.append(1e6 * (total(read_usage([self._pid])) - used) / accepted)

    def _count(self) -> int:
        return int(self._stack.query(COUNT)[0][0])


def report(api: AcceptRates, submission: AcceptRates) -> None:
    ratios = sorted(one / other for one, other in zip(submission.rates, api.rates, strict=True))
    ratio = statistics.median(ratios)
    print(f"ratio {ratio:.2f} (at least 0.8), from {ratios[0]:.2f} to {ratios[-1]:.2f} in {ROUNDS} rounds")
    record_figure("emails submitted over SMTP in 32 sessions", statistics.median(submission.rates), "/s")
    record_figure("emails accepted by the API in the same run", statistics.median(api.rates), "/s")
    record_figure("emails submitted over SMTP, ratio to requests to the API", ratio, at_least=0.8)
    record_figure("the same ratio in the worst round", ratios[0])
    record_figure("processor time of submission per email", statistics.median(submission.microseconds), "us")
    record_figure("processor time of web per email", statistics.median(api.microseconds), "us")


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
        # No two emails have the same content, of which one copy would be stored.
        await exchange(reader, writer, b"%s%d\r\n.\r\n" % (MESSAGE, next(numbers)), b"250 2.0.0")
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
