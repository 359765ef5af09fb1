"""Signatures that must not pass: those of other domains, of a part of a message, or against RFC 6376, 8301 and 8617.

What RFC 6376 says is read from its grammar by tests/receiving/signing.py: other programs pass most of these.
"""

import json
from pathlib import Path

from receiving.models import Message
from receiving.reading.dns_lookups import MessageLookups
from receiving.reading.message import read_header
from receiving.reading.verdicts import ReceivedEnvelope, verify_origin
from receiving.source import authentication_results
from tests.receiving import corpus
from tests.receiving.signing import BODY, TAGS, message, record, seal, sign, strict_name, strict_tags
from tests.receiving.zone import ZoneLookups
from tests.rows import each

DIRECTORY = Path(__file__).with_name("signatures")
POLICY = {"_dmarc.victim.example": {"TXT": ["v=DMARC1; p=reject"]}}
# Characters with which a name in d= may begin, end or be divided for one reader and not for another.
DIVIDERS = [
    *(bytes([code]) for code in (*range(0x2D), 0x2F, *range(0x3A, 0x41), *range(0x5B, 0x61), *range(0x7B, 0x80))),
    b"\r\n ",
    b"\r\n\t",
    b" \r\n ",
    b"..",
    b"\xe9",
    b"\xff",
    b"\xc0\xae",
    b"-",
    b"_",
    b"--",
    # Characters, full stops, slashes, marks, spaces and joiners that are mapped to others, or to nothing.
    *(
        character.encode()
        for character in "\u00e9\u00df\u017f\u0130\u212a\ufb01\uff41\U0001d41a\u3002\uff0e\uff61\u2025\u2024\u00b7"
        "\uff0f\uff20\uff01\u00a0\u00ad\u200b\u200c\u200d\u2028\u202e\u2060\u3000\ufeff"
    ),
]
DOMAINS = [
    *(b"victim.example%b.evil.example" % divider for divider in DIVIDERS),
    *(b"victim.example%b" % divider for divider in DIVIDERS), b"victim.example; d=evil.example",
    b"evil.example; d=victim.example", b"evil.example; d =victim.example", b"evil.example; d\r\n =victim.example",
    b"evil.example; D=victim.example", b"evil.example; d d=victim.example", b"evil.example; d.=victim.example",
    b"evil.example;; ", b"", b".", b"example", b".evil.example", b"evil.example.", b"evil..example", b"EVIL.Example",
    b"-evil.example", b"evil-.example", b"_evil.example", b"e_vil.example", b"xn--vil-9ma.example",
    b"a" * 63 + b".evil.example", b"a" * 64 + b".evil.example", b"a." * 114 + b"evil.example",
    b"a." * 120 + b"evil.example", b"a." * 121 + b"evil.example", "b\u00fccher.evil.example".encode(),
    "B\u00fccher.evil.example".encode(), "bu\u0308cher.evil.example".encode(), b"[192.0.2.1]",
    b"=?utf-8?q?victim.example?=.evil.example", b"victim.example (evil.example)", b'"victim.example".evil.example',
    b"<victim.example>.evil.example",
]  # fmt: skip
SELECTORS = [
    *(b"s1._domainkey.evil.example%b" % divider for divider in DIVIDERS), *(b"s1%b" % divider for divider in DIVIDERS),
    b"s1; s=s2", b"", b".", b"s1.", b".s1", b"s1..s2", b"S1.mail", b"_s1", b"s_1", b"-s1", b"s1-", b"a" * 63, b"a" * 64,
    b"a." * 120 + b"s1",
]  # fmt: skip
IDENTITIES = [
    *(b"@victim.example%b.evil.example" % divider for divider in DIVIDERS), b"@evil.example; i=@victim.example",
    b"@victim.example; i=@evil.example", b"", b"@", b"evil.example", b"ada.evil.example", b"ada@evil.example",
    b"ada+tag@EVIL.example", b"ada@mail.evil.example", b"ada@evil.example.", b"ada@evil.example@evil.example",
    b"ada@evil.example@victim.example", b"ada@victim.example@evil.example", b"ada@victim.example",
    b"ada@notevil.example", b"ada@example", b"ada@.evil.example", b"ada@a..evil.example", b"ada@evil=2Eexample",
    b"ada=40victim.example@evil.example", "é@evil.example".encode(), "@é.evil.example".encode(),
]  # fmt: skip


class HostileLookups(ZoneLookups):
    """A resolver for which each name that the grammar does not allow is one with a key of the attacker."""

    def __init__(self, zone: dict) -> None:
        super().__init__(zone)
        self.key_names: list[str] = []

    def look_up(self, name: str, kind: str) -> tuple:
        if "_domainkey" not in name:
            return super().look_up(name, kind)
        self.key_names.append(name)
        selector, _, domain = name.rpartition("._domainkey.")
        is_victims = domain == "victim.example" and is_selector(selector)
        return () if is_victims else (record(),)


def is_selector(text: str) -> bool:
    return bool(strict_name(text.encode(), labels=1, allowed="_"))


def verdicts_of(source: bytes, lookups: ZoneLookups | MessageLookups | None = None, **records: str) -> dict:
    """Return the verdicts about a message. records: of the zone evil.example, by selector."""
    if lookups is None:
        zone = {f"{selector}._domainkey.evil.example": {"TXT": [text]} for selector, text in records.items()}
        lookups = ZoneLookups(zone | POLICY)
    envelope = ReceivedEnvelope("bounce@none.example", "mx.none.example", corpus.IP)
    senders = read_header(source, envelope_from="").senders
    return verify_origin(source, envelope=envelope, senders=senders, lookups=lookups)


def result_of(source: bytes, key: str = "v=DKIM1; k=rsa; p=%P%") -> str:
    (verdict,) = verdicts_of(source, s1=record(key))["dkim"]
    return verdict["result"]


def expected_of(tags: bytes) -> tuple[str, str, list[str]]:
    """Return the result, the domain and the names of the keys to look up, as the standards say."""
    found = strict_tags(tags) or {}
    domain, selector = strict_name(found.get(b"d", b"")), found.get(b"s", b"")
    name = strict_name(selector + b"._domainkey." + domain.encode(), allowed="_")
    _, at, identity = found.get(b"i", b"@" + found.get(b"d", b"")).rpartition(b"@")
    is_identity = at and f".{strict_name(identity)}".endswith(f".{domain}")
    if not domain or not name or not is_selector(selector.decode()) or not is_identity:
        return "permerror", domain, []
    return ("permerror" if domain == "victim.example" else "pass"), domain, [name]


def check_hostile(tags: bytes) -> None:
    """Check the verdicts about a message of the victim with a signature of the attacker."""
    lookups = HostileLookups(POLICY)
    found = verdicts_of(sign(message(), tags), lookups)
    assert found["dmarc"]["result"] != "pass", tags
    assert found["result"] != "pass", tags
    result, domain, names = expected_of(tags + b"AAAA")
    # None if the value ends its line, and the rest is no field.
    for verdict in found["dkim"]:
        assert (verdict["result"], verdict["domain"], lookups.key_names) == (result, domain, names), tags


@each(("tags", "tag", "values"), [
    (TAGS, b"d=evil.example", DOMAINS),
    (TAGS.replace(b"d=evil.example", b"d=victim.example"), b"s=s1", SELECTORS),
    (TAGS.replace(b"s=s1", b"s=s1; i=@evil.example"), b"i=@evil.example", IDENTITIES),
])  # fmt: skip
def test_a_signature_names_only_the_domain_whose_key_verified_it(tags, tag, values):
    for value in values:
        check_hostile(tags.replace(tag, tag[:2] + value))


def test_authentication_results_show_a_name_as_it_is_or_not_at_all(settings):
    settings.EHLO_NAME = "mx.demo.example"
    shown = {"domain": "victim.example!.evil.example", "selector": ""}
    found = {
        "spf": {"result": "none", "domain": "victim.example/evil.example"},
        "dkim": [{"result": "permerror", **shown}, {"result": "pass", "domain": "a.example", "selector": "s_1"}],
        "dmarc": {"result": "none", "policy": None, "domain": "victim.example \u3002evil.example"},
        "arc": {"result": "none"},
    }
    assert authentication_results(Message(authentication=found)) == (
        "Authentication-Results: mx.demo.example;\r\n\tspf=none;\r\n\tdkim=permerror;\r\n"
        "\tdkim=pass header.d=a.example header.s=s_1;\r\n\tdmarc=none;\r\n\tarc=none\r\n"
    )


def test_an_internationalized_domain_has_its_a_label():
    tags = TAGS.replace(b"d=evil.example; s=s1", "d=bücher.example; s=schlüssel; i=ada@büro.bücher.example".encode())
    zone = {
        "xn--schlssel-95a._domainkey.xn--bcher-kva.example": {"TXT": [record()]},
        "_dmarc.xn--bcher-kva.example": {"TXT": ["v=DMARC1; p=reject"]},
    }
    found = verdicts_of(sign(message("bücher.example"), tags), ZoneLookups(zone))
    assert found["dkim"] == [{"result": "pass", "domain": "xn--bcher-kva.example", "selector": "xn--schlssel-95a"}]
    assert found["dmarc"] == {"result": "pass", "policy": "reject", "domain": "xn--bcher-kva.example"}


@each(("name", "dkim", "result"), [
    ("l-text-appended", ["policy"], "fail"), ("l-zero", ["policy"], "fail"),
    ("l-content-type-not-signed", ["policy"], "fail"), ("from-not-signed", ["permerror"], "fail"),
    ("from-not-signed-replaced", ["permerror"], "fail"), ("rsa-sha1", ["permerror"], "fail"),
    ("key-allows-only-sha1", ["permerror"], "fail"), ("key-t-s-i-subdomain", ["permerror"], "fail"),
    ("key-services-email-and-tlsrpt", ["pass"], "pass"), ("ok-i-subdomain", ["pass"], "pass"),
    ("ok-key-h-sha256", ["pass"], "pass"), ("ok-l-covers-all", ["pass"], "pass"), ("ok-plain", ["pass"], "pass"),
    ("ok-two-signatures", ["policy", "pass"], "pass"),
])  # fmt: skip
def test_messages_of_other_programs_have_the_result_of_the_standards(name, dkim, result):
    zone = json.loads((DIRECTORY / "zone.json").read_text("utf-8"))
    found = verdicts_of((DIRECTORY / f"{name}.eml").read_bytes(), ZoneLookups(zone))
    assert [verdict["result"] for verdict in found["dkim"]] == dkim
    assert found["result"] == result


# `neutral` are those whose tags dkimpy refuses: a signature that cannot be understood (RFC 8601, section 2.7.1).
@each(("old", "new", "result"), [
    (b"v=1", b"v=1", "pass"), (b"v=1", b"v=2", "neutral"), (b"v=1; ", b"", "neutral"),
    (b"v=1", b"v=1; v=1", "permerror"), (b"b=", b"x9=; b=", "pass"), (b"b=", b"x-9=; b=", "permerror"),
    (b"b=", b"=; b=", "permerror"), (b"b=", b"; b=", "permerror"), (b"b=", b"z=Subject:O'(\\b; b=", "pass"),
    (b"b=", b"z=a\x00; b=", "permerror"), (b"b=", b"z=\xff; b=", "permerror"), (b"; b=", b";\r\n\tb=", "pass"),
    (b"d=evil.example", b"d=\r\n evil.example \t", "pass"), (b"d=evil.example", b"D=evil.example", "permerror"),
    (b"rsa-sha256", b"rsa-sha1", "permerror"), (b"rsa-sha256", b"rsa-sha512", "neutral"),
    (b"rsa-sha256", b"ed25519-sha256", "permerror"), (b"h=from:to", b"h=to", "permerror"),
    (b"h=from:to", b"h=x-from:to", "permerror"), (b"h=from:to:subject:date", b"h=", "permerror"),
    (b"h=from:to", b"h=To : FROM\r\n ", "pass"), (b"h=from:to", b"h=from:from:to:cc", "pass"),
    (b"c=relaxed/relaxed", b"c=nowsp/relaxed", "neutral"), (b"b=", b"q=dns/txt; b=", "pass"),
    (b"b=", b"q=foo/bar; b=", "neutral"), (b"b=", b"t=1000000000; b=", "pass"), (b"b=", b"t=9999999999; b=", "neutral"),
    (b"b=", b"t=0x10; b=", "permerror"), (b"b=", b"x=99999999999; b=", "pass"), (b"b=", b"x=1000000000; b=", "neutral"),
    (b"b=", b"x=never; b=", "permerror"), (b"b=", b"t=1000000000; x=1000000000; b=", "permerror"),
    (b"b=", b"t=1000000000; x=999999999; b=", "permerror"), (b"b=", b"l=%d; b=" % len(BODY), "pass"),
    (b"b=", b"l=%d; b=" % (len(BODY) + 1), "permerror"), (b"b=", b"l=-1; b=", "neutral"), (b"b=", b"l=; b=", "neutral"),
    (b"b=", b"i=ada@evil.example; b=", "pass"), (b"b=", b"i=ada@other.example; b=", "permerror"),
])  # fmt: skip
def test_a_signature_has_the_result_of_rfc_6376(old, new, result):
    assert result_of(sign(message(), TAGS.replace(old, new, 1) if old != b"b=" else TAGS[:-2] + new)) == result


def test_a_signature_of_a_part_of_the_body_is_policy():
    for length in (0, 1, len(BODY) - 1):
        tags = TAGS.replace(b" h=", b" l=%d; h=" % length)
        assert result_of(sign(message(), tags, size=length)) == "policy"
    tags = TAGS.replace(b" h=", b" l=%d; h=" % len(BODY))
    signed = sign(message(), tags)
    # Empty lines at the end are not of the canonical body.
    assert result_of(signed + b"\r\n\r\n") == "pass"
    assert result_of(signed + b"Or to account B.\r\n") == "policy"
    assert result_of(signed.replace(b"account A", b"account C") + b"Or to account B.\r\n") == "fail"


@each(("text", "result"), [
    ("p=%P%", "pass"), ("v=DKIM1; n=it's (a) note; p=%P%; x=y", "pass"), ("v=DKIM2; p=%P%", "permerror"),
    ("v=dkim1; p=%P%", "permerror"),
    ("v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "permerror"),
    ("v=DKIM1; k=dsa; p=%P%", "permerror"), ("v=DKIM1; p=", "permerror"), ("v=DKIM1; p=nonsense", "permerror"),
    ("v=DKIM1; p=; p=%P%", "permerror"), ("v=DKIM1; nonsense; p=%P%", "permerror"),
    ("v=DKIM1; h=sha1; p=%P%", "permerror"), ("v=DKIM1; h=sha1 : sha256; p=%P%", "pass"),
    ("v=DKIM1; h=; p=%P%", "permerror"), ("v=DKIM1; s=*; p=%P%", "pass"), ("v=DKIM1; s=tlsrpt : email; p=%P%", "pass"),
    ("v=DKIM1; s=tlsrpt; p=%P%", "permerror"), ("v=DKIM1; s=other; p=%P%", "permerror"),
    ("v=DKIM1; t=y; p=%P%", "pass"), ("v=DKIM1; t=y:s; p=%P%", "permerror"),
])  # fmt: skip
def test_a_key_verifies_what_its_record_allows(text, result):
    """The signature is of mail.evil.example in i=, which a key with t=s forbids (RFC 6376, section 3.6.1)."""
    assert result_of(sign(message(), TAGS.replace(b"s=s1", b"s=s1; i=@mail.evil.example")), text) == result


def test_a_key_with_t_s_verifies_its_own_domain():
    for tags in (TAGS, TAGS.replace(b"s=s1", b"s=s1; i=ada@EVIL.example")):
        assert result_of(sign(message(), tags), "v=DKIM1; t=s; p=%P%") == "pass"


@each(("field", "dkim", "dmarc"), [
    # Only the lower of two fields is signed, and the upper one is shown (RFC 6376, section 8.15).
    (b"Subject: Another invoice", ["policy"], "fail"),
    (b"to: other@demo.example", ["policy"], "fail"),
    (b"Date: Sun, 29 Nov 2026 10:00:00 +0000", ["policy"], "fail"),
    (b"From: Bob <bob@evil.example>", ["permerror"], "permerror"),
    # Fields that are not signed, or that may occur more than once.
    (b"Cc: other@demo.example", ["pass"], "pass"),
    (b"Reply-To: bob@evil.example", ["pass"], "pass"),
    (b"Received: from a by b; Sun, 29 Nov 2026 10:00:00 +0000", ["pass"], "pass"),
    # dkimpy skips the line, and reads the next one as a part of the field above.
    (b"From : Bob <bob@victim.example>", [], "permerror"),
    (b"X: y\r\nFrom nobody Sun Nov 29 10:00:00 2026", [], "fail"),
    (b"X: y\r\nFrom nobody\r\n folded", [], "fail"),
    # dkimpy raises an IndexError or a MessageFormatError.
    (b" folded", [], "fail"),
    (b"\tfolded", [], "fail"),
    (b"From nobody\r\n folded", [], "fail"),
    (b"not a field", [], "fail"),
    (b"\x0b, bob@evil.example", [], "fail"),
    (b"\xc2\xa0, bob@evil.example", [], "fail"),
])  # fmt: skip
def test_a_field_that_was_added_on_top_is_not_signed(field, dkim, dmarc):
    tags = TAGS.replace(b"d=evil.example", b"d=victim.example")
    zone = POLICY | {"s1._domainkey.victim.example": {"TXT": [record()]}}
    found = verdicts_of(field + b"\r\n" + sign(message(), tags), ZoneLookups(zone))
    assert [verdict["result"] for verdict in found["dkim"]] == dkim
    assert found["dmarc"]["result"] == dmarc


def test_a_field_that_was_signed_twice_may_not_occur_more_often():
    tags = TAGS.replace(b"subject", b"subject:subject")
    signed = sign(message(), tags)
    assert result_of(signed) == "pass"
    assert result_of(b"Subject: Another\r\n" + signed) == "fail"
    assert result_of(sign(message(fields=b"Subject: Another\r\n"), tags)) == "pass"


def test_a_signature_without_a_from_field_is_not_valid():
    source = message().partition(b"\r\n")[2]
    assert result_of(sign(source)) == "permerror"


CHAIN_TAGS = {
    "message_tags": b"i=1; a=rsa-sha256; c=relaxed/relaxed; d=evil.example; s=s1; h=from:to:subject; bh=%BH%; b=",
    "seal_tags": b"i=1; a=rsa-sha256; cv=none; d=evil.example; s=s1; b=",
}


def chain_of(source: bytes, text: str = "v=DKIM1; p=%P%") -> str:
    return verdicts_of(source, HostileKeys(record(text)))["arc"]["result"]


class HostileKeys(ZoneLookups):
    """A resolver that has one key at every name."""

    def __init__(self, text: str) -> None:
        super().__init__({})
        self._text = text

    def look_up(self, name: str, kind: str) -> tuple:
        return (self._text,) if "_domainkey" in name else ()


def test_a_chain_names_domains_strictly():
    for old, new in ((b"d=evil.example", b"d=victim.example%b.evil.example"), (b"s=s1", b"s=s1%b")):
        # A line feed would end the field.
        for divider in (one for one in DIVIDERS[::5] if one != b"\n"):
            for name, tags in CHAIN_TAGS.items():
                changed = tags.replace(old, new % divider)
                named = strict_tags(changed + b"AAAA") or {}
                is_valid = strict_name(named.get(b"d", b"")) and is_selector(named.get(b"s", b"").decode())
                result = chain_of(seal(message(), **{**CHAIN_TAGS, name: changed}))
                assert result == ("pass" if is_valid else "fail"), changed


@each(("sets", "result"), [(11, "temperror"), (50, "temperror"), (51, "fail")])
def test_a_chain_with_too_many_sets_is_not_verified(sets, result):
    assert chain_of(b"ARC-Seal: i=1\r\n" * sets + message()) == result


@each(("old", "new", "result"), [
    (b"s=s1", b"s=s1", "pass"), (b"s=s1", b"s=s1; t=1", "pass"),
    (b"d=evil.example", b"d=evil.example; d=evil.example", "fail"), (b"s=s1", b"s=s1; S=s2", "pass"),
    (b"s=s1", b"S=s1", "fail"), (b"i=1", b"i=1; i=1", "fail"), (b"i=1", b"xi=1; i=1", "pass"), (b"i=1", b"i=0", "fail"),
    (b"i=1", b"i=2", "fail"), (b"i=1", b"i=" + b"1" * 5000, "fail"), (b"i=1; ", b"", "fail"),
    (b"i=1", b"x=a i=2; i=1", "fail"), (b"rsa-sha256", b"rsa-sha1", "fail"), (b"h=from:", b"h=", "fail"),
    (b"h=from:", b"h=from:arc-seal:", "fail"), (b"h=from:", b"l=5; h=from:", "fail"),
    (b"h=from:", b"l=%d; h=from:" % len(BODY), "pass"), (b"cv=none", b"cv=pass", "fail"),
    (b"cv=none", b"cv=none; cv=none", "fail"), (b"cv=none", b"cv=none; h=from", "fail"), (b"; ", b";; ", "fail"),
])  # fmt: skip
def test_a_chain_has_the_result_of_rfc_8617(old, new, result):
    for name, tags in CHAIN_TAGS.items():
        if old in tags:
            sealed = {**CHAIN_TAGS, name: tags.replace(old, new, 1)}
            assert chain_of(seal(message(), **sealed, size=5 if b"l=5" in new else None)) == result, name


@each(("text", "result"), [
    ("v=DKIM1; h=sha1; p=%P%", "fail"),
    ("v=DKIM1; s=tlsrpt; p=%P%", "fail"),
    ("v=DKIM1; s=email:tlsrpt; p=%P%", "pass"),
    # An instance is no identity.
    ("v=DKIM1; t=s; p=%P%", "pass"),
    ("v=DKIM1; p=", "fail"),
])  # fmt: skip
def test_a_key_of_a_chain_is_one_that_its_record_allows(text, result):
    assert chain_of(seal(message(), **CHAIN_TAGS), text) == result


def test_a_chain_signs_the_fields_that_are_shown():
    sealed = seal(message(), **CHAIN_TAGS)
    assert chain_of(sealed) == "pass"
    for field in (b"From: Bob <bob@evil.example>", b"Subject: Another invoice"):
        assert chain_of(field + b"\r\n" + sealed) == "fail"
    for field in (b"Date: Sun, 29 Nov 2026 10:00:00 +0000", b"X: y"):
        assert chain_of(field + b"\r\n" + sealed) == "pass"
