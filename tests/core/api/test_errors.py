"""Errors under /v1: one format, for errors of views, DRF, Django and the database."""

import io

import pytest
from django.db import OperationalError

from emails.api.views import EmailViewSet
from tests.conftest import Api, mail, make_key
from tests.rows import each

pytestmark = pytest.mark.django_db


def is_problem(response, status: int, code: str) -> bool:
    body = response.json()
    assert response["Content-Type"] == "application/problem+json"
    assert body["type"].endswith(f"/docs/errors#{code}")
    assert body["title"]
    assert body["detail"]
    assert body["requestId"] == response["X-Request-Id"]
    return (response.status_code, body["status"], body["code"]) == (status, status, code)


def raising(error: Exception):
    """Return a function that raises an error whatever it is called with."""

    def explode(*args, **kwargs):
        raise error

    return explode


def test_an_unknown_path_is_404(api: Api):
    assert is_problem(api.get("/nothing"), 404, "not_found")
    assert is_problem(api.client.get("/v1/"), 404, "not_found")
    assert is_problem(api.client.get("/v1"), 404, "not_found")


@each("path", ["/v1/nothing", "/emails"])
def test_a_json_request_to_an_unknown_path_learns_the_base_url(api: Api, path):
    response = api.client.post(path, b"{}", content_type="application/json")

    assert is_problem(response, 404, "not_found")
    assert "The API is at http" in response.json()["detail"]


def test_an_unknown_id_and_a_malformed_id_return_the_same_404(api: Api):
    unknown = api.get("/emails/0000000000000000000000").json()
    malformed = api.get("/emails/nonsense").json()
    assert unknown["code"] == "not_found"
    assert {**unknown, "requestId": ""} == {**malformed, "requestId": ""}


def test_an_unsupported_method_is_405_with_allow(api: Api):
    response = api.raw("PUT", "/emails/send", b"{}")
    assert is_problem(response, 405, "method_not_allowed")
    assert "POST" in response["Allow"]


@each(("method", "path"), [("GET", "/emails/send"), ("POST", "/emails"), ("DELETE", "/emails")])
def test_an_unsupported_method_is_405_before_a_missing_scope(alice, method, path):
    response = Api(make_key(alice.workspace, "sending_access")).raw(method, path, b"{}")

    assert is_problem(response, 405, "method_not_allowed")


def test_an_unavailable_format_is_406(api: Api):
    assert is_problem(api.get("/me", Accept="text/html"), 406, "not_acceptable")


def test_an_internal_error_is_500_without_its_text(api: Api, monkeypatch, caplog):
    monkeypatch.setattr(EmailViewSet, "valid", raising(RuntimeError("the password is hunter2")))
    response = api.post("/emails/send", mail())
    assert is_problem(response, 500, "internal_error")
    assert "hunter2" not in response.content.decode()
    assert "hunter2" in caplog.text


def test_an_error_outside_of_a_view_is_a_problem_too(api: Api, monkeypatch):
    monkeypatch.setattr(EmailViewSet, "dispatch", raising(RuntimeError("no")))
    assert is_problem(api.post("/emails/send", mail()), 500, "internal_error")


def test_an_unavailable_database_is_503_with_retry_after(api: Api, monkeypatch):
    monkeypatch.setattr(EmailViewSet, "valid", raising(OperationalError("no route to host")))
    response = api.post("/emails/send", mail())
    assert is_problem(response, 503, "service_unavailable")
    assert int(response["Retry-After"]) > 0


def test_a_body_that_stops_arriving_is_400(api: Api):
    class StalledStream(io.BytesIO):
        def read(self, *_: int) -> bytes:
            raise BlockingIOError("nothing arrived for 20 seconds")

    stalled = {"wsgi.input": StalledStream(), "CONTENT_LENGTH": "100"}
    assert is_problem(api.raw("POST", "/emails/send", b"{", **stalled), 400, "invalid_json")


def test_an_unknown_host_is_400(api: Api):
    response = api.client.get("/v1/me", headers={**api.headers, "host": "evil.example"})
    assert is_problem(response, 400, "invalid_json")


def test_an_unknown_host_is_400_for_json_outside_of_v1(client):
    response = client.post("/compat/resend/emails", b"{}", "application/json", headers={"host": "evil.example"})
    assert is_problem(response, 400, "invalid_json")
    assert response.json()["detail"] == "The host evil.example is not configured."


def test_outside_of_v1_an_unknown_path_is_an_html_page(client):
    response = client.get("/nothing")
    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")


@each("path", ["/me", "/me/", "/domains", "/domains/"])
def test_a_path_works_with_and_without_a_trailing_slash(api: Api, path):
    assert api.get(path).status_code == 200


def test_every_response_has_a_unique_request_id(api: Api):
    ids = {
        api.get("/me")["X-Request-Id"],
        api.get("/nothing")["X-Request-Id"],
        api.client.get("/healthz")["X-Request-Id"],
    }
    assert len(ids) == 3
    assert all(request_id.startswith("req_") for request_id in ids)
