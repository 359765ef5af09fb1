"""How long a request has waited is read off its connection."""

import socket
import time

import pytest

from api.admission import waited_seconds
from tests.conftest import Api

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="only Linux tells")


@pytest.fixture
def ends():
    """A client that has connected, and the server's end, taken late."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        client.sendall(b"POST")
        time.sleep(0.1)
        server, _ = listener.accept()
        with client, server:
            yield client, server


def test_the_time_in_the_queue_counts(ends):
    _, server = ends
    assert 0.09 < waited_seconds(server) < 5


def test_a_body_that_is_still_coming_has_not_waited(ends):
    client, server = ends
    client.sendall(b" /v1")
    server.recv(100)
    assert waited_seconds(server) < 0.09


def test_what_cannot_be_known_is_no_wait():
    one, other = socket.socketpair()
    with one, other:
        assert waited_seconds(one) == 0.0
    assert waited_seconds(None) == 0.0
    assert waited_seconds(one) == 0.0, "closed meanwhile"


@pytest.mark.django_db
def test_who_waited_too_long_is_told_to_come_again(api: Api, monkeypatch):
    monkeypatch.setattr("api.admission.waited_seconds", lambda _: 1.001)
    answer = api.post("/emails/send", {"to": "ada@example.com"})
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (503, "overloaded", "2")
    assert answer["X-Request-Id"] == answer.json()["requestId"]
    assert api.client.get("/healthz").status_code == 200


@pytest.mark.django_db
def test_who_waited_just_as_long_as_one_may_is_served(api: Api, monkeypatch):
    monkeypatch.setattr("api.admission.waited_seconds", lambda _: 1.0)
    assert api.get("/emails").status_code == 200
