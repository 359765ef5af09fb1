"""Which policy counts (RFC 9989, section 4.10), and texts of any kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domains.record_checks.dmarc import Policy, covering_policy, dmarc_fault, is_dmarc, names_above


def test_the_walk_visits_every_name_above_a_short_one():
    assert names_above("a.mail.example.com") == ["mail.example.com", "example.com", "com"]


def test_the_walk_jumps_where_a_name_has_eight_labels_or_more():
    assert names_above("a.b.c.d.e.f.g.com")[0] == "b.c.d.e.f.g.com"
    deep = names_above("a.b.c.d.e.f.g.h.i.j.mail.example.com")
    assert (deep[0], len(deep)) == ("g.h.i.j.mail.example.com", 7)


POLICIES = [
    # psd by name, nearest first; the one that counts.
    ({}, None),
    ({"b.example.com": "", "example.com": ""}, "example.com"),
    ({"b.example.com": "n", "example.com": ""}, "b.example.com"),
    ({"example.com": "u", "com": "y"}, "example.com"),
    ({"com": "y"}, "com"),
]


@pytest.mark.parametrize(("found", "name"), POLICIES, ids=["none", "highest", "psd=n", "below psd=y", "psd=y alone"])
def test_the_policy_that_counts(found, name):
    policies = [Policy(at, "v=DMARC1; p=none" + (f"; psd={psd}" if psd else "")) for at, psd in found.items()]
    policy = covering_policy(policies)
    assert (policy and policy.name) == name


@given(st.text(max_size=200))
def test_any_text_is_judged(text):
    fault = dmarc_fault(["v=DMARC1;" + text])
    assert fault is None or fault.endswith((".", "changed."))
    assert is_dmarc("v=DMARC1;" + text)


def test_a_long_list_of_addresses_is_judged_in_linear_time():
    import time

    begun = time.monotonic()
    dmarc_fault(["v=DMARC1; p=none; rua=" + "mailto:a@b.example," * 20_000 + "!"])
    dmarc_fault(["v=DMARC1; p=none; fo=" + "1 :" * 50_000 + "x"])
    assert time.monotonic() - begun < 1
