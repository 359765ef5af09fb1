"""Hostile messages: each is read and verified in bounded processor time, and published."""

import base64
import json
import resource
import time
from collections.abc import Iterator

import pytest
from django.utils import timezone

from console.dashboard.pages.receiving.details import describe_source
from interfaces.inbound.routed import is_looping
from receiving.forwarding.forwards import forward_email
from receiving.models import ForwardTarget, ReceivedEmail
from receiving.reading.verdicts import ReceivedEnvelope, verify_origin
from receiving.received_work import read_or_explain
from receiving.source import html_with_images, without_forged_results
from tests.receiving.builders import arrive, make_route, process_received
from tests.receiving.hostile import MESSAGES, MIB, SIZED, signed
from tests.receiving.zone import ZoneLookups
from tests.rows import each
from webhooks.formats import find_large

pytestmark = pytest.mark.full

SECONDS = 2.0
# The source, the decoded content, and texts of at most 5 MiB as several strings.
MEMORY_BYTES = 300 * 1024 * 1024
KEY = (
    "v=DKIM1; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDwIRP/UC3SBsEmGqZ9ZJW3/DkMoGeLnQg1fWn7/zYtIxN2SnFCjxOCKG9v3b4jYfc"
    "TNh5ijSsq631uBItLa7od+v/RtdC2UzJ1lWT947qR+Rcac2gbto/NMqJ0fzfVjH4OuKhitdY9tf6mcwGjaNBcWToIMmPSPDdQPNUYckcQ2QIDAQAB"
)
ENVELOPE = ReceivedEnvelope("a@example.com", "mx.example.com", "192.0.2.1")


@pytest.mark.long
@each("name", MESSAGES)
def test_a_hostile_message_takes_two_seconds_at_most(name, caplog):
    check_reading_of(name, caplog)


@each("name", [*MESSAGES][::8])
def test_a_hostile_message_is_read_and_verified_within_its_bounds(name, caplog):
    check_reading_of(name, caplog)


def check_reading_of(name, caplog):
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


@each(
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


TARGET = "grace@example.org"


@pytest.mark.django_db
@each("name", SIZED)
def test_a_hostile_message_takes_linear_time_from_its_reading_to_its_forward(name, key, alice):
    make_route(alice.workspace, include_raw=True)
    ForwardTarget.objects.create(workspace=alice.workspace, address=TARGET, confirmed_at=timezone.now())
    # Again if other load had a part in it.
    for _ in range(3):
        short, long = (dict(timed_steps(SIZED[name](size), key)) for size in (MIB // 2, 2 * MIB))
        # Four times the length: 4 in linear time, 16 in quadratic time.
        slow = {step: (short[step], long[step]) for step in long if long[step] > min(6.7 * short[step] + 0.1, SECONDS)}
        if not slow:
            break
    assert slow == {}


def timed_steps(source: bytes, key) -> Iterator[tuple[str, float]]:
    """Yield the processor time of each step that a received message takes part in."""
    began = time.process_time()
    email = arrive(source)
    process_received()
    yield "read", time.process_time() - began
    email = ReceivedEmail.objects.select_related("message").get(id=email.id)
    assert email.status in {"processed", "unreadable"}
    event = json.dumps({"id": "evt_1", "event": "received", "data": {"id": email.id}})
    steps = {
        "download": lambda: b"".join(key.get(f"/inbound/emails/{email.id}/raw").streaming_content),
        "page": lambda: describe_source(email.message),
        "images": lambda: html_with_images(email.message),
        **{f"raw to {name}": lambda name=name: render(event, name) for name in FORMATS},
    }
    if email.status == "processed":
        steps["forward"] = lambda: forward_email(email, to=TARGET)
    for step, run in steps.items():
        yield step, seconds(run)
    ReceivedEmail.objects.update(includes_raw=False, inlines_files=True)
    for name in FORMATS:
        yield f"files to {name}", seconds(lambda: render(event, name))  # noqa: B023 - called at once


FORMATS = ("postmark", "sendgrid", "mailgun")


def render(event: str, format_: str) -> None:
    found = find_large(event, format_=format_)
    assert found
    body, data = found
    assert body.render(data, "secret", 1)


def seconds(run) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began
