"""Admission control: requests that waited too long for a thread are rejected."""

import socket
from types import SimpleNamespace

import pytest

from emails.accept import checks
from emails.models import Email
from emails.rendered_content import render_compiled
from tests.conftest import Api
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture
def wait(api: Api):
    """Set how long the next requests have waited for a thread."""

    def set_wait(seconds: float, *, for_share: bool = False) -> None:
        client = SimpleNamespace(waited_seconds=seconds, waits_for_share=for_share)
        api.client.defaults["gunicorn.socket"] = client

    return set_wait


def test_a_request_that_waited_too_long_is_503_with_retry_after(api: Api, wait):
    wait(1.001)
    response = api.post("/emails/send", {"to": "ada@example.com"})
    assert (response.status_code, response.json()["code"], response["Retry-After"]) == (503, "overloaded", "2")
    assert response["X-Request-Id"] == response.json()["requestId"]
    assert api.client.get("/healthz").status_code == 200


def test_a_request_that_waited_for_others_of_its_workspace_is_429(api: Api, wait):
    wait(1.001, for_share=True)
    response = api.post("/emails/send", {"to": "ada@example.com"})
    assert (response.status_code, response.json()["code"], response["Retry-After"]) == (
        429,
        "too_many_concurrent_requests",
        "2",
    )
    assert "waiting" in response.json()["detail"]


@each(("mib", "waited", "status"), [(5, 4.9, 400), (5, 5.1, 503), (0.5, 1.1, 503)])
def test_a_large_body_may_wait_a_second_for_each_mib(api: Api, wait, mib, waited, status):
    wait(waited)
    assert api.raw("POST", "/emails/send", b" " * int(mib * 1024 * 1024)).status_code == status


def test_a_request_that_waited_exactly_the_limit_is_served(api: Api, wait):
    wait(1.0)
    assert api.get("/emails").status_code == 200


@pytest.fixture
def connection(api: Api):
    """The two ends of the connection of the next requests."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        api.client.defaults["gunicorn.socket"] = ours
        yield theirs


def send_batch(api: Api, count: int = 50):
    api.post("/templates", {"name": "t", "alias": "t", "subject": "Hi", "htmlContent": "<p>Hi</p>"})
    recipients = [{"to": f"r{number}@example.com"} for number in range(count)]
    return api.post("/emails/batch", {"from": "hi@alice.example", "templateId": "t", "recipients": recipients})


class TestClientThatLeft:
    def test_a_batch_stops_computing_and_accepts_nothing(self, api: Api, connection, monkeypatch):
        rendered = []
        monkeypatch.setattr(checks, "render_compiled", lambda *a, **b: rendered.append(1) or render_compiled(*a, **b))
        connection.close()
        assert send_batch(api).status_code == 499
        assert (len(rendered), Email.objects.count()) == (1, 0)

    def test_a_batch_of_another_service_stops(self, api: Api, connection):
        connection.close()
        message = {"From": "hi@alice.example", "To": "ada@example.com", "Subject": "Hi", "TextBody": "Hi"}
        headers = {"X-Postmark-Server-Token": api.headers["authorization"].removeprefix("Bearer ")}
        path = "/compat/postmark/email/batch"
        response = api.client.post(path, [message] * 3, content_type="application/json", headers=headers)
        assert (response.status_code, Email.objects.count()) == (499, 0)

    def test_one_that_waits_or_sends_more_is_answered(self, api: Api, connection):
        assert send_batch(api).status_code == 202
        connection.sendall(b"GET / HTTP/1.1")
        assert send_batch(api).status_code == 202

    def test_a_single_email_is_accepted(self, api: Api, connection):
        """Some programs do not wait for the response."""
        connection.close()
        email = {"from": "hi@alice.example", "to": "ada@example.com", "subject": "Hi", "text": "Hi"}
        assert api.post("/emails/send", email).status_code == 202
