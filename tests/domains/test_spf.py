"""SPF as receivers count it: look-ups, empty answers, loops; and texts of any kind."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domains.record_checks.spf import (
    Mechanism,
    SpfInvalid,
    is_spf,
    merged,
    not_covered,
    parse_mechanisms,
    parse_spf,
    spf_record,
)
from domains.record_checks.spf_evaluation import Walk
from lib.resolver import DnsTrouble, Resolver
from tests.domains.conftest import quoted
from tests.lib.nameserver import SERVFAIL, NameServer

OURS = parse_mechanisms("include:_spf.service.example")


def walk(texts: dict[str, str | list[str]], *, name: str = "example.com", rows: dict | None = None) -> Walk:
    """Walk the record of a name; texts: SPF records by name, rows: other rows."""
    zones = {other: {"TXT": [quoted(text) for text in _list(value)]} for other, value in texts.items()}
    for other, kinds in (rows or {}).items():
        zones[other] = kinds if not isinstance(kinds, dict) else {**zones.get(other, {}), **kinds}
    first = _list(texts[name])[0]
    with NameServer(zones) as server:
        found = Walk(Resolver([server.address]).look_up)
        asyncio.run(found.run(parse_spf(first), name=name))
        found.asked = len(server.questions)  # type: ignore[attr-defined]
    return found


def _list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def includes(count: int) -> dict[str, str]:
    """A record with so many includes, all of which exist."""
    names = [f"spf{number}.example" for number in range(count)]
    own = " ".join(f"include:{name}" for name in names)
    return {"example.com": f"v=spf1 {own} -all", **dict.fromkeys(names, "v=spf1 ip4:192.0.2.1 -all")}


def test_ten_look_ups_pass_and_eleven_do_not():
    assert (walk(includes(10)).problem, walk(includes(10)).lookups) == (None, 10)
    assert "needs at least 11 DNS look-ups" in walk(includes(11)).problem


def test_look_ups_are_counted_through_includes():
    chain = {f"n{number}.example.com": f"v=spf1 include:n{number + 1}.example.com -all" for number in range(10)}
    chain["n10.example.com"] = "v=spf1 -all"
    assert walk(chain, name="n0.example.com").lookups == 10
    chain["n10.example.com"] = "v=spf1 a -all"
    assert "at least 11" in walk(chain, name="n0.example.com").problem


def test_every_kind_that_asks_the_dns_counts_and_no_other_does():
    rows = {"example.com": {"A": ["192.0.2.1"], "MX": ["10 mx.example."]}, "there.example": {"A": ["127.0.0.2"]}}
    text = (
        "v=spf1 ip4:192.0.2.1 ip6:2001:db8::/32 a mx ptr exists:there.example exists:%{i}.x.example exp=e.example -all"
    )
    found = walk({"example.com": text}, rows=rows)
    assert (found.lookups, found.voids, found.problem) == (5, 0, None)


def test_a_redirect_counts_and_only_without_all():
    other = {"other.example": "v=spf1 include:_spf.service.example -all", "_spf.service.example": "v=spf1 -all"}
    found = walk({"example.com": "v=spf1 redirect=other.example", **other})
    assert (found.lookups, not_covered(OURS, found.passing)) == (2, [])
    found = walk({"example.com": "v=spf1 -all redirect=other.example", **other})
    assert (found.lookups, not_covered(OURS, found.passing)) == (0, list(OURS))


def test_what_stands_behind_all_never_counts():
    found = walk({"example.com": "v=spf1 -all include:a.example mx a ptr"})
    assert (found.lookups, found.problem) == (0, None)


@pytest.mark.parametrize("outer", ["include:", "?include:", "-include:", "~include:"])
def test_we_pass_by_way_of_an_include_that_passes(outer):
    texts = {
        "example.com": f"v=spf1 {outer}corp.example -all",
        "corp.example": "v=spf1 include:_spf.service.example ?all",
        "_spf.service.example": "v=spf1 ip4:192.0.2.1 -all",
    }
    assert (not_covered(OURS, walk(texts).passing) == []) is (outer == "include:")


def test_two_empty_answers_pass_and_three_do_not():
    assert walk({"example.com": "v=spf1 a:x1.example mx:x2.example -all"}).voids == 2
    assert "name nothing" in walk({"example.com": "v=spf1 a:x1.example mx:x2.example exists:x3.example -all"}).problem


def test_a_record_that_includes_itself():
    texts = {"example.com": "v=spf1 include:a.example -all", "a.example": "v=spf1 include:example.com -all"}
    assert walk(texts).problem == "The record includes itself by way of example.com."


def test_a_record_that_redirects_to_itself():
    assert "includes itself" in walk({"example.com": "v=spf1 redirect=example.com"}).problem


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ({}, "include:a.example leads to no SPF records"),
        ({"a.example": "hello"}, "include:a.example leads to no SPF records"),
        ({"a.example": ["v=spf1 -all", "v=spf1 ~all"]}, "include:a.example leads to 2 SPF records"),
        ({"a.example": "v=spf1 nonsense -all"}, "include:a.example leads to a broken record: 'nonsense'"),
    ],
)
def test_an_include_that_leads_nowhere_good(texts, sentence):
    assert sentence in walk({"example.com": "v=spf1 include:a.example -all", **texts}).problem


def test_more_than_ten_mail_servers():
    rows = {"example.com": {"MX": [f"10 mx{number}.example." for number in range(11)]}}
    assert "stands for 11 mail servers" in walk({"example.com": "v=spf1 mx -all"}, rows=rows).problem


def test_no_answer_is_no_verdict():
    with pytest.raises(DnsTrouble):
        walk({"example.com": "v=spf1 include:a.example -all"}, rows={"a.example": SERVFAIL})


def test_a_hostile_record_costs_a_bounded_number_of_look_ups():
    many = " ".join(f"a:h{number}" for number in range(250))
    found = walk({"example.com": f"v=spf1 {many} -all"})
    assert "at least 250" in found.problem
    assert found.asked == 0
    tree = {"example.com": "v=spf1 " + " ".join(f"include:b{n}.example" for n in range(9))}
    tree |= {f"b{n}.example": f"v=spf1 {many}" for n in range(9)}
    assert walk(tree).asked == 9


@pytest.mark.parametrize("name", ["a..b", "-", "x" * 64 + ".example", "a_b", "é.example", "x" * 250 + ".example", ":"])
def test_a_name_that_cannot_be_asked_is_told(name):
    try:
        record = parse_spf(f"v=spf1 include:{name} -all")
    except SpfInvalid:
        return
    found = Walk(Resolver([("127.0.0.1", 9)]).look_up)
    asyncio.run(found.run(record, name="example.com"))
    assert "names no domain" in found.problem


@given(st.text(alphabet=st.sampled_from('v=spf1 +-?~all:/.%{i}include2a6mxptrexistsredirect=\t"é\x00'), max_size=300))
def test_any_text_is_read_or_refused(text):
    try:
        record = parse_spf("v=spf1 " + text)
    except SpfInvalid as refusal:
        assert str(refusal).endswith(".")  # noqa: PT017
        return
    proposed = merged(["v=spf1 " + text], OURS)
    assert is_spf(proposed)
    assert not_covered(OURS, parse_spf(proposed).mechanisms) == []
    assert Mechanism("+", "all") not in parse_spf(proposed).mechanisms
    assert len(record.mechanisms) <= len(text) + 1


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["v=spf1"], "v=spf1 include:_spf.service.example"),
        (["v=spf1 redirect=a.example"], "v=spf1 include:_spf.service.example redirect=a.example"),
        (["v=spf1 mx -all", "v=spf1 mx ?all"], "v=spf1 include:_spf.service.example mx ?all"),
        (["v=spf1 MX ~include:_SPF.service.example +ALL"], "v=spf1 include:_spf.service.example MX ~all"),
    ],
)
def test_records_are_merged(texts, expected):
    assert merged(texts, OURS) == expected


def test_a_fresh_record_is_a_soft_failure_for_others():
    assert spf_record(parse_mechanisms("a:mx.example ip4:192.0.2.1")) == "v=spf1 a:mx.example ip4:192.0.2.1 ~all"


@pytest.mark.parametrize("text", ["v=spf1 mx", "mx -all", "-mx", "all", "exists:%{i}.example", "mx;", "ip6:192.0.2.1"])
def test_settings_that_are_no_mechanisms(text):
    with pytest.raises(SpfInvalid):
        parse_mechanisms(text)
