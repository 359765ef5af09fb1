"""A request is complete exactly when its last byte has arrived, however it is cut into pieces."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.web.arriving import HEAD_BYTES, ArrivingRequest, HeadTooLarge
from tests.conftest import examples

MAX_BODY = 1000
HEAD = b"POST /v1/emails/send HTTP/1.1\r\nHost: mail.example\r\n"
LENGTHS = st.integers(0, MAX_BODY)


def with_length(body: bytes) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def in_chunks(chunks: list[bytes], trailer: bytes = b"") -> bytes:
    parts = [b"%x;name=value\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks if chunk]
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(parts) + b"0\r\n" + trailer + b"\r\n"


REQUESTS = st.one_of(
    st.just(HEAD + b"\r\n"),
    st.binary(max_size=MAX_BODY).map(with_length),
    st.lists(st.binary(max_size=200), max_size=4).map(in_chunks),
    st.lists(st.binary(max_size=200), max_size=4).map(lambda chunks: in_chunks(chunks, b"Name: value\r\n")),
)


@given(REQUESTS, st.lists(st.integers(1, 60), min_size=1, max_size=30))
@settings(max_examples=examples(300))
def test_the_last_byte_completes_a_request(data, sizes):
    request = ArrivingRequest(MAX_BODY)
    position = 0
    while position < len(data):
        assert not request.is_complete
        size = sizes[position % len(sizes)]
        request.feed(data[position : position + size])
        position += size
    assert request.is_complete
    assert not request.is_cut
    assert b"".join(request.take()) == data


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 1001\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nno size\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 9000,
        b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1200,
        b"Transfer-Encoding: chunked\r\n\r\n7d0\r\n" + b"x" * 2001,
    ],
)
def test_a_body_that_is_too_large_or_malformed_is_not_waited_for(rest):
    request = ArrivingRequest(MAX_BODY)
    request.feed(HEAD + rest)
    assert (request.is_complete, request.is_cut) == (True, True)


def test_a_head_has_a_limit():
    request = ArrivingRequest(MAX_BODY)
    request.feed(HEAD)
    with pytest.raises(HeadTooLarge):
        request.feed(b"X: " + b"x" * HEAD_BYTES)


def test_a_client_that_expects_a_reply_before_the_body_is_known():
    request = ArrivingRequest(MAX_BODY)
    request.feed(HEAD + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    assert (request.expects_continue, request.is_complete, request.body_bytes) == (True, False, 5)


@pytest.mark.parametrize("piece", [b"x", b"X: y\r\n", b"\r\n\r"])
def test_many_small_pieces_of_a_head_take_linear_time(piece):
    def cost(size):
        started = time.process_time()
        request = ArrivingRequest(MAX_BODY)
        for _ in range(size // len(piece)):
            request.feed(piece)
        return time.process_time() - started

    assert cost(60_000) < max(10 * cost(15_000), 0.05)
