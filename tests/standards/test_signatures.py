"""DKIM signatures: three independent verifiers accept every shape and reject every tampered message."""

import json
import re
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import dkim

from core.delivery.message.dkim import SigningKey, sign
from tests.conftest import _private_key
from tests.rows import each
from tests.standards import shapes
from tests.standards.tools import node, program

VERIFY = Path(__file__).parent / "scripts" / "verify.cjs"
OVERSIGNED = [
    "from", "sender", "reply-to", "to", "cc", "subject", "date", "message-id", "in-reply-to", "references",
    "mime-version", "content-type", "content-transfer-encoding",
    "list-id", "list-unsubscribe", "list-unsubscribe-post", "feedback-id",
    "auto-submitted", "importance", "disposition-notification-to",
]  # fmt: skip


def is_verified_by_dkimpy(message: bytes) -> bool:
    try:
        return bool(dkim.verify(message, dnsfunc=lambda *_, **__: shapes.record().encode()))
    except dkim.DKIMException:
        return False


def accepted_by_opendkim(directory: Path, files: list[Path]) -> set[Path]:
    keys, configuration = directory / "keys", directory / "opendkim.conf"
    keys.write_text(f"{shapes.RECORD_NAME} {shapes.record()}\n")
    configuration.write_text(f"Mode v\nSyslog no\nTestPublicKeys {keys}\n")
    opendkim = program("opendkim", package="opendkim")
    command = [opendkim, "-x", configuration, "-v", "-t", ",".join(map(str, files))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return {
        Path(path)
        for path in re.findall(r"^opendkim: (.+?): verification \(.*\) succeeded$", done.stdout, re.MULTILINE)
    }


def message_with_body(body: bytes) -> bytes:
    head = b"From: a@alice.example\r\nTo:  b@example.com\r\nX: y\r\n\r\n"
    return sign(head + body, key=SigningKey(shapes.DOMAIN, shapes.SELECTOR, _private_key()))


# Bodies for each rule of the relaxed form (RFC 6376, section 3.4.4).
BODIES = [
    b"", b"\r\n", b"\r\n\r\n\r\n", b" \t\r\n \r\n", b"a", b"a\r\n", b"a \t \r\n\r\n", b"a \r\n \r\nb",
    b"\t a\t\tb  c\r\n", b"\r\n\r\na\r\n" + b"\r\n" * 600_000, b"x" * 3_000_000, b"a  b\t\r\n" * 400_000,
    b" " * 5_000 + b"a\r\n", b"a\r\n" + b" \r\n" * 700_000 + b"b",
]  # fmt: skip


def test_dkimpy_verifies_every_shape():
    assert [name for name, message in shapes.signed().items() if not is_verified_by_dkimpy(message)] == []


def test_dkimpy_refuses_every_attack():
    assert [name for name, message in shapes.tampered().items() if is_verified_by_dkimpy(message)] == []


@each("body", BODIES)
def test_dkimpy_verifies_every_relaxed_body(body):
    assert is_verified_by_dkimpy(message_with_body(body))


@each("unit", [b" ", b"\t", b" \t", b"\r\n", b" \r\n", b"a ", b"a  ", b"x"])
def test_signing_a_hostile_body_takes_linear_time(unit):
    short, long = (unit * (size // len(unit)) + b"a\r\n" for size in (250_000, 1_000_000))
    # 16 in quadratic time.
    assert seconds_to_sign(long) < 6.7 * seconds_to_sign(short) + 0.1


def seconds_to_sign(body: bytes) -> float:
    begun = time.process_time()
    message_with_body(body)
    return time.process_time() - begun


def test_opendkim_verifies_every_shape_and_refuses_every_attack(tmp_path, good, bad):
    accepted = accepted_by_opendkim(tmp_path, [*good.values(), *bad.values()])
    assert [name for name, path in good.items() if path not in accepted] == []
    assert [name for name, path in bad.items() if path in accepted] == []


def test_mailauth_verifies_every_shape_and_refuses_every_attack(good, bad, as_json):
    found = json.loads(node(VERIFY, given=as_json))
    for path in good.values():
        (result,) = found[str(path)]
        assert (result["result"], result["underSized"]) == ("pass", None)
        assert (result["modulusLength"], result["format"]) == (2048, "relaxed/relaxed")
    results = {name: [result["result"] for result in found[str(path)]] for name, path in bad.items()}
    assert [name for name, given in results.items() if "pass" in given] == []


def test_every_structural_header_is_signed_once_more_than_it_occurs():
    message = shapes.signed()["both"]
    head = message.partition(b"\r\n\r\n")[0].decode()
    signed = re.sub(r"\s", "", re.search(r"h=([^;]*);", head)[1]).split(":")
    occurring = [name.lower() for name in re.findall(r"^([\w-]+):", head, re.MULTILINE)]
    assert {name: signed.count(name) for name in OVERSIGNED} == {name: occurring.count(name) + 1 for name in OVERSIGNED}
    assert set(signed) == set(OVERSIGNED)
    assert " l=" not in head


def test_the_signature_is_the_same_on_every_attempt():
    name = "all together"
    before = shapes.signed()[name]
    shapes.signed.cache_clear()
    assert shapes.signed()[name] == before


def test_the_signature_time_is_the_given_time_or_now():
    key = SigningKey(shapes.DOMAIN, shapes.SELECTOR, _private_key())
    message = b"From: a@alice.example\r\n\r\nHi\r\n"
    assert b" t=86400;" in sign(message, key=key, at=datetime(1970, 1, 2, tzinfo=UTC))
    now = int(re.search(rb" t=(\d+);", sign(message, key=key))[1])
    assert abs(now - datetime.now(UTC).timestamp()) < 60


def test_lines_of_a_signature_are_short():
    for message in shapes.signed().values():
        signature = message.partition(b"\r\nFrom:")[0]
        assert max(map(len, signature.split(b"\r\n"))) <= 78
