"""Messages per second out of a filled queue, against django-post-office and Postfix, in one run.

    .venv/bin/python -m benchmarks.sending [emails]

Ours renders a template, rewrites the links, signs, sends and records; theirs send what was written before.
Needs DATABASE_URL of a server on which databases may be created, and Debian's postfix package (not running).
django-post-office is installed into an environment of its own.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg

from benchmarks.sinks import distant_sink, smtp_sink
from tests.flows.stack import REPOSITORY, Stack, running_stack

ROUNDS = 3
WORKERS = 2
# A real welcome mail with six links, and paragraphs up to 10 kB.
WELCOME = (REPOSITORY / "tests" / "corpus" / "welcome.html").read_text(encoding="utf-8")
SENTENCE = "Your account is ready, and everything that you need to begin is explained on the pages behind these links."
FILLING = f"<p>Dear {{{{name}}}}, {SENTENCE} {SENTENCE}</p>\n" * 16
HTML = WELCOME.replace("</body>", f"{FILLING}</body>")
TEXT = f"Dear {{{{name}}}},\n\n{SENTENCE}\n" * 8
PEER = REPOSITORY / "benchmarks" / "peers" / "send_queued.py"

Sink = Callable[[], AbstractContextManager[int]]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "mail.html").write_text(HTML)
        (folder / "mail.txt").write_text(TEXT)
        python = installed(folder)
        near = [(ours(folder, smtp_sink, count), post_office(folder, python, smtp_sink, count)) for _ in range(ROUNDS)]
        relay = [postfix(count) for _ in range(ROUNDS)]
        far = [(ours(folder, distant_sink, count), post_office(folder, python, distant_sink, 300)) for _ in range(2)]
    print(f"HTML of {len(HTML)} bytes, {count} emails, medians of {ROUNDS} rounds")
    report("from a filled queue", near, at_least=3.5)
    print(f"  Postfix's relay {statistics.median(relay):.0f}/s: ratio ", end="")
    print(f"{statistics.median(mine for mine, _ in near) / statistics.median(relay):.2f} (at least 3)")
    report("with round trips of 100 ms", far, at_least=15)


def report(what: str, rounds: list[tuple[float, float]], *, at_least: float) -> None:
    mine, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(one / other for one, other in rounds)
    print(f"{what}: {mine:.0f}/s, django-post-office {theirs:.0f}/s: ratio {ratio:.2f} (at least {at_least})")


def ours(folder: Path, sink: Sink, count: int) -> float:
    """Return emails per second, from the first that is recorded to the last."""
    with sink() as port:
        transport = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{port}?tls=none"}
        with running_stack(folder, **transport) as stack:
            fill(stack, count)
            return drained(stack, count)


def fill(stack: Stack, count: int) -> None:
    stack.start("web", WEB_CONCURRENCY="1")
    template = {
        "name": "Receipt",
        "subject": "Your receipt, {{name}}",
        "htmlContent": HTML,
        "textContent": TEXT,
        "alias": "receipt",
    }
    stack.call("POST", "/templates", template)
    for start in range(0, count, 500):
        recipients = [
            {"to": f"user{number}@example.com", "templateData": {"name": f"User {number}"}}
            for number in range(start, min(start + 500, count))
        ]
        batch = {"from": "hello@demo.example", "templateId": "receipt", "recipients": recipients}
        assert stack.call("POST", "/emails/batch", batch).status == 202
    stack.kill("web")


def drained(stack: Stack, count: int) -> float:
    with psycopg.connect(stack.database, autocommit=True) as connection:

        def left() -> int:
            row = connection.execute("SELECT count(*) FROM emails_pending").fetchone()
            return int(row[0]) if row else 0

        stack.start(*(f"worker-{number}" for number in range(WORKERS)), DELIVERY_CONNECTIONS="100")
        deadline = time.monotonic() + 300
        while (first := left()) == count and time.monotonic() < deadline:
            time.sleep(0.005)
        started = time.perf_counter()
        while left() and time.monotonic() < deadline:
            time.sleep(0.02)
        seconds = time.perf_counter() - started
    sent = stack.query("SELECT count(*) FROM emails_recipient WHERE state = 'sent'")
    assert sent == [(count,)], sent
    return first / seconds


def installed(folder: Path) -> Path:
    """Make an environment with django-post-office and return its interpreter."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    packages = ["django-post-office", "Django<5.3", "psycopg[binary]"]
    subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True, capture_output=True)
    return python


def post_office(folder: Path, python: Path, sink: Sink, count: int) -> float:
    with sink() as port, tempfile.TemporaryDirectory() as logs, running_database() as database:
        command = [
            str(python),
            str(PEER),
            database,
            str(port),
            str(count),
            str(folder / "mail.html"),
            str(folder / "mail.txt"),
        ]
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=logs)
    assert run.returncode == 0, run.stderr
    return count / float(run.stdout.split()[-1])


@contextmanager
def running_database() -> Iterator[str]:
    """Yield the URL of a database of the benchmark's own."""
    server, name = os.environ["DATABASE_URL"].rpartition("/")[0], f"peer_{uuid4().hex[:12]}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{server}/{name}"
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def postfix(count: int) -> float:
    """Return messages per second that Postfix relays from a filled queue."""
    raise NotImplementedError


if __name__ == "__main__":
    main()
