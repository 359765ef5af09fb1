"""Stops of the web server under load: no request fails behind a load balancer, or while one would notice the stop."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Self

import pytest

from tests.stack.servers import running_server
from tests.stack.stack import Stack, answers_200, free_port, listens, running_stack, wait_for
from tests.standards.tools import program

pytestmark = pytest.mark.stack
# More than the processes accept, so that some connections are in the queue of the kernel.
CLIENTS = 24
# More than the proxy needs to notice.
STOP_DELAY_SECONDS = 4
# A signal ends it.
LONG_DELAY = "200"
PROXY = """
defaults
  mode http
  retries 0
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout check 10s
frontend web
  bind 127.0.0.1:{port}
  default_backend servers
backend servers
  option httpchk GET /servingz
  http-check send hdr Host 127.0.0.1
  default-server check inter 100ms fall 2 rise 1
  server one 127.0.0.1:{one}
  server two 127.0.0.1:{two}
"""


class Load:
    """Clients that send one request after another, each with a new connection, until they are stopped."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: Counter[str] = Counter()
        self._is_stopped = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(CLIENTS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped.set()
        for thread in self._threads:
            thread.join()

    def wait_for_answers(self, count: int) -> None:
        wait_for(lambda: self.answers["200"] >= count, seconds=60, what=f"{count} answers")

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            self.answers[self._call()] += 1

    def _call(self) -> str:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", "/healthz")
            return str(connection.getresponse().status)
        except OSError as error:
            return type(error).__name__
        finally:
            connection.close()


def test_a_signal_to_all_processes_is_a_graceful_stop_too(stack):
    """Service managers such as systemd send SIGTERM to all processes of a service."""
    stack.start("web", WEB_CONCURRENCY="2", WEB_STOP_DELAY=LONG_DELAY)
    with Load(int(stack.environment["PORT"])) as load:
        load.wait_for_answers(200)
        before = load.answers["200"]
        os.killpg(stack.processes["web"].pid, signal.SIGTERM)
        wait_for(lambda: not stack.is_ready(), seconds=60, what="the server is not ready")
        load.wait_for_answers(before + 100)
    assert set(load.answers) == {"200"}
    stack.processes["web"].send_signal(signal.SIGINT)
    stack.processes["web"].wait(60)


def test_a_stopping_server_is_healthy_but_not_ready(stack):
    stack.start("worker", "web", WEB_STOP_DELAY=LONG_DELAY)
    wait_for(stack.is_ready, seconds=60, what="the server is ready")
    stack.processes["web"].send_signal(signal.SIGTERM)
    wait_for(lambda: not stack.is_ready(), seconds=60, what="the server is not ready")
    assert stack.is_healthy()
    assert stack.send().status == 202
    # SIGINT ends the wait.
    stack.processes["web"].send_signal(signal.SIGINT)
    stack.processes["web"].wait(60)


def test_a_rolling_restart_behind_a_proxy_fails_no_request(tmp_path):
    ports = {"web-one": free_port(), "web-two": free_port()}
    with running_stack(tmp_path, WEB_CONCURRENCY="2", WEB_STOP_DELAY=str(STOP_DELAY_SECONDS)) as stack:
        port = int(stack.environment["PORT"])
        with proxy(tmp_path, port=port, one=ports["web-one"], two=ports["web-two"]):
            stack.start("worker")
            for name, own_port in ports.items():
                start(stack, name, own_port)
            with Load(port) as load:
                for name, own_port in ports.items():
                    load.wait_for_answers(load.answers["200"] + 200)
                    stopping = stack.processes.pop(name)
                    stopping.send_signal(signal.SIGTERM)
                    assert stopping.wait(60) == 0
                    start(stack, name, own_port)
                load.wait_for_answers(load.answers["200"] + 200)
    assert set(load.answers) == {"200"}


@contextmanager
def proxy(folder: Path, **ports: int) -> Iterator[None]:
    settings = folder / "haproxy.cfg"
    settings.write_text(PROXY.format(**ports))
    command = [program("haproxy", package="haproxy"), "-f", str(settings)]
    with running_server(command, is_ready=lambda: listens(ports["port"]), log=folder / "haproxy.log"):
        yield


def start(stack: Stack, name: str, port: int) -> None:
    stack.start(name, PORT=str(port))
    wait_for(lambda: answers_200(f"http://127.0.0.1:{port}/readyz"), seconds=60, what="the server is ready")
