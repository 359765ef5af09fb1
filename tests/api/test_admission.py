"""Admission control: the wait of a request is read from its connection."""

import socket
import time

import pytest

from api.admission import waited_seconds
from tests.conftest import Api

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="only on Linux")


@pytest.fixture
def ends():
    """A connected client, and the server's end, accepted late."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        client.sendall(b"POST")
        time.sleep(0.1)
        server, _ = listener.accept()
        with client, server:
            yield client, server


def test_the_time_in_the_queue_is_counted(ends):
    _, server = ends
    assert 0.09 < waited_seconds(server) < 5


def test_a_body_that_is_still_coming_has_not_waited(ends):
    client, server = ends
    client.sendall(b" /v1")
    server.recv(100)
    assert waited_seconds(server) < 0.09


def test_an_unknown_wait_is_zero():
    one, other = socket.socketpair()
    with one, other:
        assert waited_seconds(one) == 0.0
    assert waited_seconds(None) == 0.0
    assert waited_seconds(one) == 0.0, "closed in the meantime"


@pytest.fixture(autouse=True)
def _old_process(monkeypatch):
    # No request waits for longer than the process runs.
    monkeypatch.setattr("api.admission.STARTED", 0.0)


@pytest.mark.django_db
def test_a_request_that_waited_too_long_is_503_with_retry_after(api: Api, monkeypatch):
    monkeypatch.setattr("api.admission.waited_seconds", lambda _: 1.001)
    response = api.post("/emails/send", {"to": "ada@example.com"})
    assert (response.status_code, response.json()["code"], response["Retry-After"]) == (503, "overloaded", "2")
    assert response["X-Request-Id"] == response.json()["requestId"]
    assert api.client.get("/healthz").status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize(("mib", "waited", "status"), [(5, 4.9, 400), (5, 5.1, 503), (0.5, 1.1, 503)])
def test_a_large_body_may_wait_a_second_for_each_mib(api: Api, monkeypatch, mib, waited, status):
    monkeypatch.setattr("api.admission.waited_seconds", lambda _: waited)
    assert api.raw("POST", "/emails/send", b" " * int(mib * 1024 * 1024)).status_code == status


@pytest.mark.django_db
def test_a_request_that_waited_exactly_the_limit_is_served(api: Api, monkeypatch):
    monkeypatch.setattr("api.admission.waited_seconds", lambda _: 1.0)
    assert api.get("/emails").status_code == 200


@pytest.mark.django_db
def test_a_request_that_waited_for_the_start_of_the_server_is_served(api: Api, monkeypatch):
    monkeypatch.setattr("api.admission.waited_seconds", lambda _: 5.0)
    assert api.get("/emails").status_code == 503
    monkeypatch.setattr("api.admission.STARTED", time.monotonic())
    assert api.get("/emails").status_code == 200
