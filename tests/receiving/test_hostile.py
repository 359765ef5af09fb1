"""Hostile messages: each is read and verified in at most two seconds of processor time, and published."""

import base64
import resource
import time

import pytest

from inbound.routed import is_looping
from receiving.reading.verdicts import ReceivedEnvelope, verify_origin
from receiving.received_work import read_or_explain
from receiving.source import without_forged_results
from tests.receiving.hostile import MESSAGES, signed
from tests.receiving.zone import ZoneLookups

pytestmark = pytest.mark.full

SECONDS = 2.0
# The source, the decoded content, and texts of at most 5 MiB as several strings.
MEMORY_BYTES = 300 * 1024 * 1024
KEY = (
    "v=DKIM1; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDwIRP/UC3SBsEmGqZ9ZJW3/DkMoGeLnQg1fWn7/zYtIxN2SnFCjxOCKG9v3b4jYfc"
    "TNh5ijSsq631uBItLa7od+v/RtdC2UzJ1lWT947qR+Rcac2gbto/NMqJ0fzfVjH4OuKhitdY9tf6mcwGjaNBcWToIMmPSPDdQPNUYckcQ2QIDAQAB"
)
ENVELOPE = ReceivedEnvelope("a@example.com", "mx.example.com", "192.0.2.1")


@pytest.mark.parametrize("name", MESSAGES)
def test_a_hostile_message_takes_two_seconds_at_most(name, caplog):
    source = MESSAGES[name]()
    began = time.thread_time()
    reading, error = read_or_explain(source, envelope_from="a@example.com")
    read_at = time.thread_time()
    assert reading is not None
    lookups = ZoneLookups({"s1._domainkey.example.com": {"TXT": [KEY]}})
    verdicts = verify_origin(source, envelope=ENVELOPE, senders=reading.senders, lookups=lookups)
    verified_at = time.thread_time()
    is_looping(source)
    without_forged_results(source[: 1024 * 1024])
    traced_at = time.thread_time()
    assert max(read_at - began, verified_at - read_at, traced_at - verified_at) <= SECONDS
    assert error in {"", "Reading the message took too long"}
    assert verdicts["result"] in {"none", "fail", "permerror"}
    assert len(reading.attachments) <= 250
    assert len(reading.headers) <= 400
    assert max(len(reading.text.encode()), len(reading.html.encode())) <= 5 * 1024 * 1024
    assert not caplog.records


def test_reading_takes_a_bounded_multiple_of_the_message():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for name in ("empty lines as html", "base64 text", "quoted equals", "tags", "utf-16"):
        read_or_explain(MESSAGES[name](), envelope_from="")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    assert grown < MEMORY_BYTES


def der(tag: int, content: bytes) -> bytes:
    """Encode a value of ASN.1."""
    length = len(content)
    octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag]) + (bytes([length]) if length < 128 else bytes([0x80 | len(octets)]) + octets) + content


def key_record(*, bits: int, exponent_bits: int) -> str:
    """Return the record of an RSA key."""
    numbers = (der(2, b"\0" + b"\xff" * (count // 8)) for count in (bits, exponent_bits))
    algorithm = bytes.fromhex("300d06092a864886f70d0101010500")
    key = der(0x30, algorithm + der(3, b"\0" + der(0x30, b"".join(numbers))))
    return f"v=DKIM1; p={base64.b64encode(key).decode()}"


@pytest.mark.parametrize(
    ("bits", "exponent_bits", "result"),
    [(8192, 64, "fail"), (8192, 72, "permerror"), (8200, 32, "permerror"), (180_000, 180_000, "permerror")],
)
def test_a_huge_key_is_not_used(bits, exponent_bits, result):
    body = b"Hi\r\n"
    signature = base64.b64encode(b"\x55" * (bits // 8))
    source = signed(body, count=1).replace(b"b=AAAA", b"b=" + signature[:2000])
    lookups = ZoneLookups({"s1._domainkey.example.com": {"TXT": [key_record(bits=bits, exponent_bits=exponent_bits)]}})
    began = time.thread_time()
    verdicts = verify_origin(source, envelope=ENVELOPE, senders=[], lookups=lookups)
    assert [verdict["result"] for verdict in verdicts["dkim"]] == [result]
    assert time.thread_time() - began < 0.5
