"""SPF evaluation: lookup limits, void lookups, loops; and arbitrary texts."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.lib.network.resolver import DnsError, Resolver
from domains.record_checks.spf_evaluation import SpfEvaluation
from domains.record_checks.spf_syntax import (
    InvalidSpf,
    SpfMechanism,
    build_spf_record,
    find_uncovered,
    is_spf,
    merge_records,
    parse_mechanisms,
    parse_spf,
)
from tests.core.lib.nameserver import SERVFAIL, NameServer
from tests.domains.conftest import quoted
from tests.rows import each

REQUIRED = parse_mechanisms("include:_spf.service.example")


def evaluate(
    texts: dict[str, str | list[str]], *, name: str = "example.com", rows: dict | None = None
) -> SpfEvaluation:
    """Evaluate the record of a name. texts: SPF records by name; rows: other zone data."""
    zones = {other: {"TXT": [quoted(text) for text in _list(value)]} for other, value in texts.items()}
    for other, kinds in (rows or {}).items():
        zones[other] = kinds if not isinstance(kinds, dict) else {**zones.get(other, {}), **kinds}
    first = _list(texts[name])[0]
    with NameServer(zones) as server:
        found = SpfEvaluation(Resolver([server.address]).look_up)
        asyncio.run(found.run(parse_spf(first), domain=name))
        found.query_count = len(server.questions)  # type: ignore[attr-defined]
    return found


def _list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def includes(count: int) -> dict[str, str]:
    """Return a record with `count` includes, and the included records."""
    names = [f"spf{number}.example" for number in range(count)]
    own = " ".join(f"include:{name}" for name in names)
    return {"example.com": f"v=spf1 {own} -all", **dict.fromkeys(names, "v=spf1 ip4:192.0.2.1 -all")}


def test_ten_lookups_pass_and_eleven_fail():
    assert (evaluate(includes(10)).error, evaluate(includes(10)).lookups) == (None, 10)
    assert "needs at least 11 DNS lookups" in evaluate(includes(11)).error


def test_lookups_are_counted_through_includes():
    chain = {f"n{number}.example.com": f"v=spf1 include:n{number + 1}.example.com -all" for number in range(10)}
    chain["n10.example.com"] = "v=spf1 -all"
    assert evaluate(chain, name="n0.example.com").lookups == 10
    chain["n10.example.com"] = "v=spf1 a -all"
    assert "at least 11" in evaluate(chain, name="n0.example.com").error


def test_only_mechanisms_that_query_dns_are_counted():
    rows = {"example.com": {"A": ["192.0.2.1"], "MX": ["10 mx.example."]}, "there.example": {"A": ["127.0.0.2"]}}
    text = (
        "v=spf1 ip4:192.0.2.1 ip6:2001:db8::/32 a mx ptr exists:there.example exists:%{i}.x.example exp=e.example -all"
    )
    found = evaluate({"example.com": text}, rows=rows)
    assert (found.lookups, found.void_lookups, found.error) == (5, 0, None)


def test_a_redirect_is_counted_only_without_all():
    other = {"other.example": "v=spf1 include:_spf.service.example -all", "_spf.service.example": "v=spf1 -all"}
    found = evaluate({"example.com": "v=spf1 redirect=other.example", **other})
    assert (found.lookups, find_uncovered(REQUIRED, published=found.passing)) == (2, [])
    found = evaluate({"example.com": "v=spf1 -all redirect=other.example", **other})
    assert (found.lookups, find_uncovered(REQUIRED, published=found.passing)) == (0, list(REQUIRED))


def test_terms_after_all_are_ignored():
    found = evaluate({"example.com": "v=spf1 -all include:a.example mx a ptr"})
    assert (found.lookups, found.error) == (0, None)


@each("outer", ["include:", "?include:", "-include:", "~include:"])
def test_an_include_with_a_pass_qualifier_passes(outer):
    texts = {
        "example.com": f"v=spf1 {outer}corp.example -all",
        "corp.example": "v=spf1 include:_spf.service.example ?all",
        "_spf.service.example": "v=spf1 ip4:192.0.2.1 -all",
    }
    assert (find_uncovered(REQUIRED, published=evaluate(texts).passing) == []) is (outer == "include:")


def test_two_void_lookups_pass_and_three_fail():
    assert evaluate({"example.com": "v=spf1 a:x1.example mx:x2.example -all"}).void_lookups == 2
    assert (
        "resolve to nothing"
        in evaluate({"example.com": "v=spf1 a:x1.example mx:x2.example exists:x3.example -all"}).error
    )


@each(("term", "back"), [("include:a.example", "include:example.com"), ("redirect=a.example", "redirect=example.com")])
def test_a_record_that_leads_back_to_itself(term, back):
    texts = {"example.com": f"v=spf1 {term}", "a.example": f"v=spf1 {back}"}
    assert evaluate(texts).error == f"The record leads back to itself through {back}. Remove that term."


@each("term", ["include:a.example", "redirect=a.example"])
@each(
    ("texts", "message"),
    [
        ({}, "{term} has no SPF records"),
        ({"a.example": "hello"}, "{term} has no SPF records"),
        ({"a.example": ["v=spf1 -all", "v=spf1 ~all"]}, "{term} has 2 SPF records"),
        ({"a.example": "v=spf1 nonsense -all"}, "The SPF record of {term} is invalid: 'nonsense'"),
    ],
)
def test_a_term_without_one_valid_record(texts, message, term):
    assert message.format(term=term) in evaluate({"example.com": f"v=spf1 {term}", **texts}).error


@each("name", ["", "a..b", "-"])
def test_a_redirect_without_a_valid_name_is_named(name):
    assert (
        f"'redirect={name}' does not contain a valid domain name"
        in evaluate({"example.com": f"v=spf1 redirect={name}"}).error
    )


@each(("dotted", "plain"), [
    ("include:_spf.service.example.", "include:_spf.service.example"),
    ("INCLUDE:_SPF.Service.Example.", "include:_spf.service.example"),
    ("a:mx.service.example./24", "a:mx.service.example/24"),
    ("mx:service.example.", "mx:service.example"),
    ("exists:there.example.", "exists:there.example"),
])  # fmt: skip
def test_the_final_dot_of_a_name_does_not_count(dotted, plain):
    published = parse_spf(f"v=spf1 {dotted} -all").mechanisms
    assert find_uncovered(parse_mechanisms(plain), published=published) == []
    assert merge_records([f"v=spf1 ?{dotted} -all"], parse_mechanisms(plain)) == f"v=spf1 {plain} -all"


def test_a_name_with_a_final_dot_is_followed():
    texts = {
        "example.com": "v=spf1 redirect=a.example.",
        "a.example": "v=spf1 include:_spf.service.example. -all",
        "_spf.service.example": "v=spf1 -all",
    }
    found = evaluate(texts)
    assert (found.error, find_uncovered(REQUIRED, published=found.passing)) == (None, [])


def test_more_than_ten_mail_servers():
    rows = {"example.com": {"MX": [f"10 mx{number}.example." for number in range(11)]}}
    assert "mx resolves to 11 mail servers" in evaluate({"example.com": "v=spf1 mx -all"}, rows=rows).error


def test_a_failed_lookup_raises_an_error():
    with pytest.raises(DnsError):
        evaluate({"example.com": "v=spf1 include:a.example -all"}, rows={"a.example": SERVFAIL})


def test_a_hostile_record_causes_a_bounded_number_of_lookups():
    many = " ".join(f"a:h{number}" for number in range(250))
    found = evaluate({"example.com": f"v=spf1 {many} -all"})
    assert "at least 250" in found.error
    assert found.query_count == 0
    tree = {"example.com": "v=spf1 " + " ".join(f"include:b{n}.example" for n in range(9))}
    tree |= {f"b{n}.example": f"v=spf1 {many}" for n in range(9)}
    assert evaluate(tree).query_count == 9


@each("name", ["a..b", "-", "x" * 64 + ".example", "a_b", "é.example", "x" * 250 + ".example", ":"])
def test_an_invalid_include_name_is_an_error(name):
    try:
        record = parse_spf(f"v=spf1 include:{name} -all")
    except InvalidSpf:
        return
    found = SpfEvaluation(Resolver([("127.0.0.1", 9)]).look_up)
    asyncio.run(found.run(record, domain="example.com"))
    assert "does not contain a valid domain name" in found.error


@given(st.text(alphabet=st.sampled_from('v=spf1 +-?~all:/.%{i}include2a6mxptrexistsredirect=\t"é\x00'), max_size=300))
def test_any_text_is_parsed_or_rejected(text):
    try:
        record = parse_spf("v=spf1 " + text)
    except InvalidSpf as refusal:
        assert str(refusal).endswith(".")  # noqa: PT017
        return
    proposed = merge_records(["v=spf1 " + text], REQUIRED)
    assert is_spf(proposed)
    assert find_uncovered(REQUIRED, published=parse_spf(proposed).mechanisms) == []
    assert SpfMechanism("+", "all") not in parse_spf(proposed).mechanisms
    assert len(record.mechanisms) <= len(text) + 1


@each(
    ("texts", "expected"),
    [
        (["v=spf1"], "v=spf1 include:_spf.service.example"),
        (["v=spf1 redirect=a.example"], "v=spf1 include:_spf.service.example redirect=a.example"),
        (["v=spf1 mx -all", "v=spf1 mx ?all"], "v=spf1 include:_spf.service.example mx ?all"),
        (["v=spf1 MX ~include:_SPF.service.example +ALL"], "v=spf1 include:_spf.service.example MX ~all"),
    ],
)
def test_records_are_merged(texts, expected):
    assert merge_records(texts, REQUIRED) == expected


def test_a_new_record_ends_with_a_soft_failure():
    assert build_spf_record(parse_mechanisms("a:mx.example ip4:192.0.2.1")) == "v=spf1 a:mx.example ip4:192.0.2.1 ~all"


@each("text", ["v=spf1 mx", "mx -all", "-mx", "all", "exists:%{i}.example", "mx;", "ip6:192.0.2.1"])
def test_invalid_mechanisms_in_the_setting(text):
    with pytest.raises(InvalidSpf):
        parse_mechanisms(text)
