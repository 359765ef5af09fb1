"""Admission control: requests that waited too long for a thread are rejected."""

from types import SimpleNamespace

import pytest

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
