"""The spam filter: a real rspamd, and servers that answer badly, late or not at all."""

import asyncio
import json
import time

import aiohttp
import pytest
from django.conf import settings

from receiving.models import ReceivedEmail
from receiving.reading import spam
from receiving.reading.verdicts import ReceivedEnvelope
from tests.receiving.builders import PLAIN, make_route, receive
from tests.rows import each
from tests.stack.stack import free_port
from tests.standards.rspamd import PASSWORD, Rspamd
from tests.webhooks.receiver import Receiver, drip, raw, reset, silence, status

ENVELOPE = ReceivedEnvelope("ada@example.com", "mx.example.com", "192.0.2.7")
ANSWER = {"score": 7.5, "required_score": 15, "action": "add header", "symbols": {"B": {"score": 1}, "A": {}}}
GTUBE = b"Subject: x\r\n\r\nXJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X\r\n"


def check(source: bytes = PLAIN, envelope: ReceivedEnvelope = ENVELOPE):
    server = {"url": settings.RSPAMD_URL, "password": settings.RSPAMD_PASSWORD}
    return asyncio.run(spam.check_spam(source, **server, envelope=envelope, recipient="support@alice.example"))


@pytest.fixture
def rspamd(settings):
    with Receiver() as receiver:
        settings.RSPAMD_URL = receiver.url("")
        receiver.answer = status(200, body=json.dumps(ANSWER).encode())
        yield receiver


def test_the_filter_gets_the_message_and_its_envelope(rspamd, settings):
    settings.RSPAMD_PASSWORD = "secret"
    assert check() == {"score": 7.5, "threshold": 15.0, "isSpam": False, "symbols": ["A", "B"]}
    (request,) = rspamd.received
    names = ("Ip", "Helo", "From", "Rcpt", "Password")
    values = ["192.0.2.7", "mx.example.com", "ada@example.com", "support@alice.example", "secret"]
    assert (request.path, request.body) == ("/checkv2", PLAIN)
    assert [request.header(name.lower()) for name in names] == values


def test_without_a_url_nothing_is_asked(settings):
    settings.RSPAMD_URL = ""
    assert check() is None


def test_the_envelope_cannot_add_header_fields(rspamd):
    check(envelope=ReceivedEnvelope("a@b.example\r\nPassword: x", "mx\r\n\r\nPOST /", None))
    (request,) = rspamd.received
    assert request.header("from") == "a@b.example??Password: x"
    assert request.header("helo") == "mx????POST /"
    assert request.header("ip") is request.header("password") is None


@each("answer", [
    status(500),
    status(401, body=json.dumps(ANSWER).encode()),
    status(200, body=b""),
    status(200, body=b"<html>"),
    status(200, body=b"[]"),
    status(200, body=b"null"),
    status(200, body=b"[" * 100_000),
    status(200, body=b'{"score": 1}'),
    status(200, body=b'{"score": null, "required_score": 15}'),
    status(200, body=b'{"score": NaN, "required_score": 15}'),
    status(200, body=b'{"score": 1e999, "required_score": 15}'),
    status(200, body=b'{"score": 1, "required_score": 15, "symbols": 5}'),
    status(200, body=json.dumps(ANSWER | {"more": "x" * spam.MAX_ANSWER_BYTES}).encode()),
    raw(b"no HTTP\r\n\r\n"),
    reset,
])  # fmt: skip
def test_an_answer_that_is_none_is_no_result(rspamd, answer):
    rspamd.answer = answer
    assert check() is None


def test_names_of_symbols_are_short_and_printable(rspamd):
    symbols = {"A\0B\n": 1, "x" * 10_000: 1, **{f"S{number:03}": 1 for number in range(200)}}
    rspamd.answer = status(200, body=json.dumps(ANSWER | {"symbols": symbols}).encode())
    found = check()["symbols"]
    assert found[0] == "A?B?"
    assert len(found) == spam.MAX_SYMBOLS
    assert max(map(len, found)) <= 100


def test_a_redirect_is_not_followed(rspamd):
    rspamd.answer = status(307, f"Location: {rspamd.url('/other')}")
    assert check() is None
    assert [request.path for request in rspamd.received] == ["/checkv2"]


@pytest.mark.parametrize("answer", [silence, drip(b"HTTP/1.1 200 OK\r\n\r\n{", every_seconds=0.02, tail=b" ")])
def test_a_slow_filter_is_given_up(rspamd, answer, monkeypatch):
    assert spam.TIMEOUT.total == 10.0
    monkeypatch.setattr(spam, "TIMEOUT", aiohttp.ClientTimeout(total=0.5))
    rspamd.answer = answer
    began = time.monotonic()
    assert check() is None
    assert time.monotonic() - began < 5


def test_a_filter_that_is_down_delays_nothing(settings):
    settings.RSPAMD_URL = f"http://127.0.0.1:{free_port()}"
    began = time.monotonic()
    assert check() is None
    assert time.monotonic() - began < 5


@pytest.mark.django_db
def test_a_message_with_the_score_of_its_route_is_blocked_and_one_below_is_not(rspamd, alice, receiving):
    make_route(alice.workspace, match="strict*", spam_above=7.5)
    make_route(alice.workspace, match="lax*", spam_above=7.6)
    strict, lax = receive(to="strict@alice.example"), receive(to="lax@alice.example")
    assert (strict.status, strict.blocked_reason, lax.status) == ("blocked", "spam", "processed")
    assert lax.message.spam["score"] == 7.5
    assert [request.header("rcpt") for request in rspamd.received] == ["strict@alice.example", "lax@alice.example"]
    rspamd.answer = reset
    assert receive(PLAIN + b"!", to="strict@alice.example").status == "processed"
    assert ReceivedEmail.objects.filter(message__spam__isnull=True).count() == 1


@pytest.mark.full
def test_a_real_rspamd(settings):
    with running_rspamd() as server:
        settings.RSPAMD_URL = server.url
        assert check() == {"score": 0.0, "threshold": 15.0, "isSpam": False, "symbols": []}
        wanted = {"score": 4.5, "threshold": 15.0, "isSpam": False, "symbols": ["WINNER"]}
        assert check(PLAIN.replace(b"Where", b"Winner:")) == wanted
        assert check(GTUBE) == {"score": 15.0, "threshold": 15.0, "isSpam": True, "symbols": ["GTUBE"]}
        assert "ip: 192.0.2.7, from: ada@example.com, rcpt: support@alice.example" in server.log()
        settings.RSPAMD_URL = server.controller_url
        assert check() is None
        settings.RSPAMD_PASSWORD = PASSWORD
        assert check(GTUBE)["isSpam"]


def running_rspamd() -> Rspamd:
    """Return a server; a machine without the program fails the test, as nothing else proves that it answers."""
    try:
        return Rspamd()
    except pytest.skip.Exception as reason:
        pytest.fail(str(reason))
