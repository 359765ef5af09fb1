"""Verdicts: those of mailauth on 300 messages, DNS that fails or is slow, and forged Authentication-Results."""

import base64
import json
import time
from pathlib import Path

import pytest

from core.lib.mail.address_lists import Mailbox
from receiving.reading.dns_lookups import DnsUnavailable, MessageLookups, SharedLookups
from receiving.reading.message import read_header
from receiving.reading.signatures import SignatureVerdict
from receiving.reading.verdicts import ReceivedEnvelope, conclude, verify_origin
from tests.core.lib.nameserver import SERVFAIL, SILENCE, NameServer
from tests.event_loops import running_loop
from tests.receiving import corpus, published_samples
from tests.receiving.builders import PLAIN, make_route, receive, with_field
from tests.receiving.zone import FAILS, ZoneLookups
from tests.rows import each
from tests.standards.tools import node

SCRIPT = Path(__file__).with_name("verdicts.cjs")
# mailauth takes adkim=s for relaxed: a signature of the organizational domain is not aligned (RFC 7489, section 3.1.1).
DIFFERENT = {("mail.strict.example: organizational domain", "bounce@none.example")}
# mailauth passes a signature of a part of the body, and counts the rest: here it is `policy` (RFC 6376, section 8.2).
PARTIAL = ": partial"

# Messages without a From of one address, for which mailauth says `none` and Postrider `permerror`.
WITHOUT_SENDER = {"test_nofrom.message", "test.nofrom.message", "test.message_multi", "test.message_multi2"}
# Cases of the suite of RFC 7208 for which mailauth has a result that the suite does not allow.
SPF_ERRORS_OF_MAILAUTH = {
    "bare-ip6", "exp-only-macro-char", "exp-syntax-error", "exp-twice", "hello-domain-literal", "include-temperror",
    "invalid-hello-macro", "p-macro-multiple", "require-valid-helo",
}  # fmt: skip


def verdicts_of(case: corpus.Case, zone: dict) -> dict:
    reading = read_header(case.source, envelope_from=case.mail_from)
    envelope = ReceivedEnvelope(case.mail_from, case.helo, case.ip)
    return verify_origin(case.source, envelope=envelope, senders=reading.senders, lookups=ZoneLookups(zone))


def verdicts_of_mailauth(cases: list[corpus.Case], zone: dict) -> list[dict]:
    given = [
        {"source": base64.b64encode(case.source).decode(), "ip": case.ip, "helo": case.helo, "mailFrom": case.mail_from}
        for case in cases
    ]
    verdicts: list[dict] = json.loads(node(SCRIPT, given=json.dumps({"zone": zone, "cases": given})))
    return verdicts


@pytest.mark.full
def test_verdicts_equal_those_of_mailauth():
    cases, zone = corpus.cases(), corpus.zone()
    theirs = verdicts_of_mailauth(cases, zone)
    assert len(cases) >= 300
    found: dict[str, set] = {"spf": set(), "dmarc": set(), "arc": set()}
    by_name = {(case.name, case.mail_from): expected for case, expected in zip(cases, theirs, strict=True)}
    for case, expected in zip(cases, theirs, strict=True):
        ours = verdicts_of(case, zone)
        compared = {
            "spf": ours["spf"]["result"],
            "dkim": [verdict["result"] == "pass" for verdict in ours["dkim"]],
            "dmarc": ours["dmarc"]["result"],
            "policy": ours["dmarc"]["policy"],
            "arc": ours["arc"]["result"],
        }
        for name, results in found.items():
            results.add(compared[name])
        expected["dkim"] = [result == "pass" for result in expected["dkim"] if result != "none"]
        if (case.name, case.mail_from) in DIFFERENT:
            expected["dmarc"] = "fail"
        if case.name.endswith(PARTIAL):
            unsigned = by_name[case.name.removesuffix(PARTIAL) + ": unsigned", case.mail_from]
            expected |= {"dkim": [False], "dmarc": unsigned["dmarc"]}
        assert compared == expected, case
    # The corpus has every result.
    assert found == {
        "spf": {"pass", "fail", "softfail", "neutral", "none", "permerror"},
        "dmarc": {"pass", "fail", "none"},
        "arc": {"none", "pass", "fail"},
    }


@pytest.mark.full
def test_spf_has_the_results_of_the_published_suite_and_of_mailauth():
    count = 0
    for zone, cases in published_samples.spf_suite():
        theirs = verdicts_of_mailauth([case for case, _ in cases], zone)
        for (case, allowed), expected in zip(cases, theirs, strict=True):
            ours = verdicts_of(case, zone)["spf"]["result"]
            assert ours in allowed, case
            assert (expected["spf"] in allowed) == (case.name not in SPF_ERRORS_OF_MAILAUTH), case
            count += 1
    assert count == 203


@pytest.mark.full
def test_dkim_and_dmarc_equal_those_of_mailauth_on_published_messages():
    zone, cases = published_samples.messages()
    passed = 0
    for case, expected in zip(cases, verdicts_of_mailauth(cases, zone), strict=True):
        ours = verdicts_of(case, zone)
        signatures = [verdict["result"] for verdict in ours["dkim"]].count("pass")
        assert signatures == expected["dkim"].count("pass"), case
        if case.name not in WITHOUT_SENDER:
            assert ours["dmarc"]["result"] == expected["dmarc"], case
        passed += signatures > 0
    assert (len(cases), passed) == (25, 5)


def _named(name: str, mail_from: str = "bounce@none.example") -> corpus.Case:
    return next(case for case in corpus.cases() if (case.name, case.mail_from) == (name, mail_from))


@each(("name", "results"), [
    ("pass.example: relaxed/relaxed", ["pass"]), ("pass.example: ed25519", ["pass"]),
    ("pass.example: two", ["pass", "pass"]), ("pass.example: changed body", ["fail"]),
    ("pass.example: changed field", ["fail"]), ("pass.example: no key", ["permerror"]),
    ("pass.example: broken signature", ["neutral"]), ("pass.example: unsigned", []),
])  # fmt: skip
def test_each_signature_has_its_result(name, results):
    verdicts = verdicts_of(_named(name), corpus.zone())
    assert [verdict["result"] for verdict in verdicts["dkim"]] == results


@each(("name", "kind", "changed"), [
    ("none.example", "TXT", {"spf": "temperror"}),
    ("rsa._domainkey.pass.example", "TXT", {"dkim": ["temperror"], "dmarc": "temperror", "result": "temperror"}),
    ("_dmarc.pass.example", "TXT", {"dmarc": "temperror", "result": "temperror"}),
])  # fmt: skip
def test_a_failed_lookup_is_a_temporary_error_of_its_verdict(name, kind, changed):
    zone = corpus.zone()
    zone[name] = {kind: FAILS}
    found = verdicts_of(_named("pass.example: relaxed/relaxed"), zone)
    results = {
        "spf": found["spf"]["result"],
        "dkim": [verdict["result"] for verdict in found["dkim"]],
        "dmarc": found["dmarc"]["result"],
        "result": found["result"],
    }
    assert results == {"spf": "none", "dkim": ["pass"], "dmarc": "pass", "result": "pass", **changed}


@each(("spf", "dkim", "dmarc", "result"), [
    ("pass", [], "none", "pass"), ("fail", [("pass", "sub.a.example")], "none", "pass"),
    ("fail", [("pass", "b.example")], "none", "fail"), ("none", [], "none", "none"),
    ("temperror", [], "none", "temperror"), ("pass", [("pass", "a.example")], "fail", "fail"),
    ("fail", [], "pass", "pass"), ("pass", [], "permerror", "permerror"),
])  # fmt: skip
def test_the_result_is_dmarc_or_alignment_without_a_policy(spf, dkim, dmarc, result):
    envelope = ReceivedEnvelope("x@mail.a.example", "mx.example", "192.0.2.1")
    signatures = [SignatureVerdict(verdict, domain) for verdict, domain in dkim]
    assert conclude("a.example", envelope, spf, signatures, dmarc) == result


@each("fields", [b"", b"From: a@pass.example\r\nFrom: b@fail.example\r\n", b"From: a@x, b@y\r\n"])
def test_without_exactly_one_sender_nothing_passes(fields):
    case = corpus.Case("", fields + b"Subject: Hi\r\n\r\nHi", "a@pass.example")
    found = verdicts_of(case, corpus.zone())
    assert (found["spf"]["result"], found["dmarc"]["result"], found["result"]) == ("pass", "permerror", "permerror")


@pytest.fixture
def loop():
    with running_loop() as loop:
        yield loop


def test_silent_name_servers_take_ten_seconds_for_all_lookups(loop):
    with NameServer({"a.example": SILENCE, "b.example": SERVFAIL, "c.example": {"TXT": ['"x"']}}) as server:
        lookups = MessageLookups(SharedLookups(loop, [server.address]), seconds=0.5)
        began = time.monotonic()
        assert lookups.look_up("c.example", "TXT") == ("x",)
        for name in ("b.example", "a.example", "d.example"):
            with pytest.raises(DnsUnavailable):
                lookups.look_up(name, "TXT")
        envelope = ReceivedEnvelope("x@a.example", "mx.example", "192.0.2.1")
        found = verify_origin(PLAIN, envelope=envelope, senders=[Mailbox("ada@a.example", "")], lookups=lookups)
        assert time.monotonic() - began < 2
    assert (found["spf"]["result"], found["dmarc"]["result"], found["result"]) == ("temperror",) * 3
    assert server.count("c.example", "TXT") == 1


@pytest.mark.django_db
def test_our_results_take_the_place_of_forged_ones(key, route):
    """tests/receiving/test_downloads.py has all spellings of forged fields."""
    foreign = "Authentication-Results: other.example; mx.demo.example=pass"
    forged = "Authentication-Results: mx.demo.example; dmarc=pass header.from=bank.example"
    email = receive(with_field(forged, with_field(foreign)))
    raw = b"".join(key.get(f"/inbound/emails/{email.id}/raw").streaming_content)
    ours = (
        b"Authentication-Results: mx.demo.example;\r\n\tspf=none smtp.mailfrom=example.com;\r\n\tdkim=none;\r\n"
        b"\tdmarc=none header.from=example.com;\r\n\tarc=none\r\n"
    )
    assert raw == email.message.trace.encode() + ours + with_field(foreign)


@pytest.mark.django_db
def test_verdicts_come_from_dns_and_decide_about_a_route(key, alice, settings):
    records = corpus.zone()
    zones = {
        name: {
            kind: [f'"{text}"' if len(text) < 255 else f'"{text[:200]}" "{text[200:]}"' for text in texts]
            for kind, texts in types.items()
            if kind == "TXT"
        }
        for name, types in records.items()
    }
    make_route(alice.workspace, require_authenticated=True)
    case = _named("pass.example: relaxed/relaxed")
    with NameServer(zones) as server:
        settings.DNS_SERVERS = [server.address]
        email = receive(case.source, envelope_from="bounce@pass.example", remote_ip=corpus.IP)
        forged = receive(_named("pass.example: changed body").source, envelope_from="x@none.example")
    shown = key.get(f"/inbound/emails/{email.id}").json()
    assert shown["authentication"] == {
        "result": "pass",
        "spf": {"result": "pass", "domain": "pass.example"},
        "dkim": [{"result": "pass", "domain": "pass.example", "selector": "rsa"}],
        "dmarc": {"result": "pass", "policy": "reject", "domain": "pass.example"},
        "arc": {"result": "none"},
    }
    assert (email.status, forged.status, forged.blocked_reason) == ("processed", "blocked", "not_authenticated")
