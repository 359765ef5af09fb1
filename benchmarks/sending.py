"""Benchmark of messages per second from a full queue, compared with django-post-office and Postfix.

    .venv/bin/python -m benchmarks.sending [emails]

Postrider renders a template, rewrites links, signs, sends and records; the others send prepared messages.
Requires DATABASE_URL of a server on which databases may be created, wrk, and Debian's postfix package (not running).
django-post-office is installed into a separate virtual environment.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import redis
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from benchmarks.accept import wrk
from benchmarks.figures import record_figure
from benchmarks.sinks import delayed_smtp_sink, smtp_sink
from config.heartbeats import PREFIX
from tests.stack.stack import REPOSITORY, Stack, running_stack, wait_for
from tests.standards.postfix import Postfix

ROUNDS = 3
WORKERS = 2
CONCURRENCY = 32
SINGLE_SECONDS = 8
SIGNING_SECONDS = 3.0
SBIN = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
# A realistic welcome email with six links, filled up with paragraphs to 10 kB.
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
        python = install_post_office(folder)
        near = [
            (measure_postrider(folder, smtp_sink, count), measure_post_office(folder, python, smtp_sink, count))
            for _ in range(ROUNDS)
        ]
        relay = [measure_postfix(count) for _ in range(ROUNDS)]
        single = [measure_single_sends(folder) for _ in range(ROUNDS)]
        far = [
            (
                measure_postrider(folder, delayed_smtp_sink, count),
                measure_post_office(folder, python, delayed_smtp_sink, 300),
            )
            for _ in range(2)
        ]
    print(f"HTML of {len(HTML)} bytes, {count} emails, medians of {ROUNDS} rounds")
    report("sending from a full queue", near, at_least=3.5)
    print(f"  Postfix relay {statistics.median(relay):.0f}/s: ratio ", end="")
    to_relay = statistics.median(mine for mine, _ in near) / statistics.median(relay)
    print(f"{to_relay:.2f} (at least 3)")
    record_figure("sending from a full queue, ratio to a Postfix relay", to_relay, at_least=3)
    signing_rate = signature_rate()
    print(f"RSA-2048 signatures on all cores, without sending: {signing_rate:.0f}/s")
    record_figure("RSA-2048 signatures on all cores, without sending", signing_rate, "/s")
    record_figure("RSA-2048 signatures, ratio to a Postfix relay", signing_rate / statistics.median(relay))
    report("sending with round trips of 100 ms", far, at_least=15)
    ours_single, theirs_single = (statistics.median(column) for column in zip(*single, strict=True))
    print(f"accepted over HTTP and delivered: {ours_single:.0f}/s, by Postfix over SMTP {theirs_single:.0f}/s")
    record_figure(
        "single emails accepted over HTTP and delivered, ratio to Postfix over SMTP",
        ours_single / theirs_single,
        at_least=1,
    )


def report(what: str, rounds: list[tuple[float, float]], *, at_least: float) -> None:
    mine, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(one / other for one, other in rounds)
    print(f"{what}: {mine:.0f}/s, django-post-office {theirs:.0f}/s: ratio {ratio:.2f} (at least {at_least})")
    record_figure(what, mine, "/s")
    record_figure(f"{what}, ratio to django-post-office", ratio, at_least=at_least)


def measure_postrider(folder: Path, sink: Sink, count: int) -> float:
    """Return emails per second, from the first recorded delivery to the last."""
    with sink() as port:
        transport = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{port}?tls=none"}
        with running_stack(folder, **transport) as stack:
            fill(stack, count)
            return measure_sending(stack, count)


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


def measure_sending(stack: Stack, count: int) -> float:
    with psycopg.connect(stack.database, autocommit=True) as connection:

        def left() -> int:
            row = connection.execute("SELECT count(*) FROM emails_pending").fetchone()
            return int(row[0]) if row else 0

        def is_empty() -> bool:
            return connection.execute("SELECT FROM emails_pending LIMIT 1").fetchone() is None

        # The start of the workers is not measured, as for the compared programs. `manage.py hold` and `release` would
        # add an event to each email that waited meanwhile.
        connection.execute("INSERT INTO emails_hold (id) VALUES (1)")
        stack.start(*(f"worker-{number}" for number in range(WORKERS)), DELIVERY_CONNECTIONS="200")
        wait_for(lambda: worker_count(stack) == WORKERS, seconds=60, what="the workers are running")
        connection.execute("DELETE FROM emails_hold")
        deadline = time.monotonic() + 300
        while (first := left()) == count and time.monotonic() < deadline:
            time.sleep(0.005)
        started = time.perf_counter()
        # Checked without counting, which costs as much as sending a few emails.
        while not is_empty() and time.monotonic() < deadline:
            time.sleep(0.02)
        seconds = time.perf_counter() - started
    sent = stack.query("SELECT count(*) FROM emails_recipient WHERE state = 'sent'")
    assert sent == [(count,)], sent
    return first / seconds


def worker_count(stack: Stack) -> int:
    """Return the number of worker processes with a heartbeat."""
    return len(list(redis.Redis.from_url(stack.environment["REDIS_URL"]).scan_iter(f"{PREFIX}*")))


def install_post_office(folder: Path) -> Path:
    """Install django-post-office into a virtual environment and return its interpreter."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    packages = ["django-post-office", "Django<5.3", "psycopg[binary]"]
    subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True, capture_output=True)
    return python


def measure_post_office(folder: Path, python: Path, sink: Sink, count: int) -> float:
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


def measure_postfix(count: int) -> float:
    """Return messages per second that Postfix relays from a filled queue."""
    with smtp_sink() as port, Postfix(routes={"*": port}, settings={"defer_transports": "smtp"}) as relay:
        inject(relay, count)
        relay.set("defer_transports", "")
        started = time.perf_counter()
        relay.flush()
        wait_for(lambda: relayed_count(relay) >= count, seconds=300, what="Postfix relays everything")
        return count / (time.perf_counter() - started)


def measure_single_sends(folder: Path) -> tuple[float, float]:
    """Return single sends per second from the first call to the last delivery: Postrider's and Postfix's."""
    with smtp_sink() as port:
        transport = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{port}?tls=none"}
        with running_stack(folder, **transport) as stack:
            stack.start("web", *(f"worker-{number}" for number in range(WORKERS)), WEB_CONCURRENCY="0")
            stack.send()
            wait_for(lambda: queue_depth(stack) == 0, seconds=60, what="warm workers")
            started = time.perf_counter()
            wrk(stack, write_wrk_script(folder, stack), seconds=SINGLE_SECONDS)
            wait_for(lambda: queue_depth(stack) == 0, seconds=300, what="everything is sent")
            count = accepted_count(stack) - 1
            measure_postrider = count / (time.perf_counter() - started)
    with smtp_sink() as port, Postfix(routes={"*": port}) as relay:
        started = time.perf_counter()
        inject(relay, count)
        wait_for(lambda: relayed_count(relay) >= count, seconds=300, what="Postfix relays everything")
        return measure_postrider, count / (time.perf_counter() - started)


def write_wrk_script(folder: Path, stack: Stack) -> Path:
    """Write the wrk script, which sends each email to another address."""
    path = folder / "single.lua"
    body = json.dumps({"from": "hello@demo.example", "to": "u@example.com", "subject": "Your receipt", "html": HTML})
    before, after = body.split("u@example.com")
    headers = f'{{["Authorization"] = "Bearer {stack.key}", ["Content-Type"] = "application/json"}}'
    path.write_text(
        f"n, headers, before, after = 0, {headers}, [==[{before}]==], [==[{after}]==]\n"
        "function request()\n  n = n + 1\n"
        '  return wrk.format("POST", nil, headers, before .. "u" .. n .. "@example.com" .. after)\nend\n'
    )
    return path


def inject(relay: Postfix, count: int) -> None:
    """Submit messages of 10 kB to Postfix, over as many connections as in the HTTP benchmark."""
    options = ["-s", str(CONCURRENCY), "-m", str(count), "-l", "10240", "-f", "a@demo.example", "-t", "u@example.com"]
    subprocess.run(["smtp-source", *options, f"127.0.0.1:{relay.port}"], check=True, env=SBIN)


def relayed_count(relay: Postfix) -> int:
    return relay.log().count("status=sent")


def accepted_count(stack: Stack) -> int:
    return int(stack.query("SELECT count(*) FROM emails_email")[0][0])


def queue_depth(stack: Stack) -> int:
    return int(stack.query("SELECT count(*) FROM emails_pending")[0][0])


def signature_rate() -> float:
    """Return RSA-2048 signatures per second on all cores, an upper bound for any sender that signs."""
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores) as pool:
        return sum(pool.map(_signatures, [SIGNING_SECONDS] * cores))


def _signatures(seconds: float) -> float:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        key.sign(b"header", PKCS1v15(), SHA256())
        count += 1
    return count / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
