"""The real web process with an unreachable database, and the hits once it is back."""

import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection

from tests.clients.faulty import relay
from tests.conftest import make_account
from tests.interfaces.tracking.conftest import BROWSER, TARGET, make_reader
from tests.stack.limits import limited
from tests.stack.servers import running_server
from tests.stack.stack import COMMANDS, PYTHON, REPOSITORY, free_port, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.django_db(transaction=True)]


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def call(url: str, *, method: str = "GET", data: bytes | None = None):
    """Return (status, headers, body, seconds); no redirect is followed."""
    request = urllib.request.Request(url, data, {"User-Agent": BROWSER}, method=method)
    started = time.monotonic()
    try:
        with urllib.request.build_opener(NoRedirect).open(request, timeout=30) as response:
            status, headers, body = response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        with error:
            status, headers, body = error.code, error.headers, error.read()
    return status, headers, body, time.monotonic() - started


@contextmanager
def web(tmp_path: Path, database_url: str) -> Iterator[str]:
    port = free_port()
    environment = {**os.environ, "PORT": str(port), "DATABASE_URL": database_url, "WEB_CONCURRENCY": "1"}
    url, command = f"http://127.0.0.1:{port}", [PYTHON, *COMMANDS["web"]]
    options = {"cwd": REPOSITORY, "env": environment}
    with running_server(command, is_ready=lambda: is_alive(url), log=tmp_path / "web.log", **options):
        yield url


def is_alive(url: str) -> bool:
    with suppress(OSError):
        return call(f"{url}/healthz")[0] == 200
    return False


def database_url(port: int = 0) -> str:
    """Return the URL of the test's database, at another port if one is given."""
    settings = connection.settings_dict
    address = f"127.0.0.1:{port or settings['PORT'] or 5432}"
    return f"postgres://{settings['USER']}:{settings['PASSWORD']}@{address}/{settings['NAME']}"


@limited(1)
def test_links_work_without_a_database_and_hits_are_recorded_when_it_is_back(tmp_path, limit):
    reader = make_reader(make_account("alice").workspace)
    port = free_port()
    with web(tmp_path, database_url(port)) as url:
        assert call(f"{url}/readyz")[0] == 503
        status, headers, body, seconds = call(url + reader.click_path())
        assert (status, headers["Location"], body) == (302, TARGET, b"")
        assert seconds < limit
        status, headers, body, seconds = call(url + reader.pixel_path)
        assert (status, headers["Content-Type"], len(body)) == (200, "image/gif", 43)
        assert seconds < limit
        assert call(url + reader.pixel_path, method="HEAD")[:3:2] == (200, b"")

        status, _, page, _ = call(url + reader.unsubscribe_path)
        assert (status, b"this sender" in page, b"<button>" in page) == (200, True, True)
        status, headers, page, _ = call(
            url + reader.unsubscribe_path, method="POST", data=b"List-Unsubscribe=One-Click"
        )
        assert (status, headers["Retry-After"], b"Please try again" in page) == (503, "60", True)
        assert reader.kinds() == []

        with relay(database_url(), port=port):
            wait_for(lambda: len(reader.kinds()) == 2, seconds=60, what="the hits are recorded")
            assert reader.kinds() == ["clicked", "opened"]
            assert call(url + reader.unsubscribe_path, method="POST", data=b"")[0] == 200
            assert reader.kinds() == ["clicked", "opened", "unsubscribed"]


def test_a_stopping_web_process_records_its_hits_but_no_head_request(tmp_path):
    reader = make_reader(make_account("alice").workspace)
    with web(tmp_path, database_url()) as url:
        for path in (reader.pixel_path, reader.unsubscribe_path):
            host = urlsplit(url)
            with socket.create_connection((host.hostname, host.port), timeout=60) as wire:
                wire.sendall(f"HEAD {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda: wire.recv(65_536), b""))
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.endswith(b"\r\n\r\n")
        for path in (reader.pixel_path, reader.click_path()):
            call(url + path)
    assert reader.kinds() == ["opened", "clicked"]
