"""Chunked bodies, which some libraries of the dialects send."""

import io
import json
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.http.body import Body, ChunkedReader
from gunicorn.http.unreader import IterUnreader

from core.api.parser import MAX_BODY_BYTES
from emails.models import Email
from tests.conftest import make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_every_endpoint import POSTMARK_MAIL, RESEND_MAIL, SENDGRID_MAIL
from tests.interfaces.compat.test_odd_requests import MEMBERS
from tests.rows import each

pytestmark = pytest.mark.django_db

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "resend": ("/emails", RESEND_MAIL),
    "postmark": ("/email", POSTMARK_MAIL),
    "sendgrid": ("/v3/mail/send", SENDGRID_MAIL),
}


class ClosedInput(io.BytesIO):
    """The input of a client that disconnects, as gunicorn reports it."""

    def read(self, size: int | None = -1) -> bytes:
        raise OSError("The client disconnected")


def broken_input() -> Body:
    """Return gunicorn's input of a client that sends an invalid chunk."""
    return Body(ChunkedReader(SimpleNamespace(limit_request_field_size=0), IterUnreader([b"zz\r\nabc\r\n"])))


def post(dialect: Dialect, body: io.BytesIO, **environ: Any) -> Any:
    path, _ = REQUESTS[dialect.name]
    source = {"wsgi.input": body, "wsgi.input_terminated": True}
    environ = {**source, "CONTENT_LENGTH": "", "CONTENT_TYPE": "application/json", **environ}
    headers = {**dialect.headers, "transfer-encoding": "chunked"}
    url = f"/compat/{dialect.name}{path}"
    return dialect.client.generic("POST", url, headers=headers, **environ)


def source(dialect: Dialect) -> io.BytesIO:
    return io.BytesIO(json.dumps(REQUESTS[dialect.name][1]).encode())


@pytest.fixture(params=REQUESTS)
def dialect(request, key) -> Dialect:
    return Dialect(request.param, key)


def test_a_chunked_body_is_accepted(dialect):
    assert post(dialect, source(dialect)).status_code in {200, 202}
    assert Email.objects.get().to == ["ada@example.com"]


def test_a_chunked_body_has_the_limit_of_others(dialect):
    body = io.BytesIO(b" " * (MAX_BODY_BYTES + 100))
    response = post(dialect, body)
    assert response.json().keys() == MEMBERS[dialect.name]
    assert "bytes are allowed" in response.content.decode()
    assert body.tell() == MAX_BODY_BYTES + 1


@each("make_input", [ClosedInput, broken_input])
def test_a_broken_body_is_an_error_of_the_dialect(dialect, make_input):
    response = post(dialect, make_input())
    assert 400 <= response.status_code < 500
    assert response.json().keys() == MEMBERS[dialect.name]


def test_a_chunked_body_is_not_read_before_the_key_is_checked(dialect, alice):
    body = source(dialect)
    stranger = Dialect(dialect.name, "wrong")
    reader = Dialect(dialect.name, make_key(alice.workspace, "read_only"))
    for client in (stranger, reader):
        assert post(client, body).status_code in {401, 403}
        assert body.tell() == 0


def test_other_types_and_servers_without_chunks_are_refused(dialect):
    body = source(dialect)
    for environ in ({"wsgi.input_terminated": False}, {"HTTP_CONTENT_ENCODING": "gzip"}):
        assert 400 <= post(dialect, body, **environ).status_code < 500
        assert body.tell() == 0
