"""DMARC policies: the one that applies (RFC 9989, section 4.10), and arbitrary texts."""

from hypothesis import given
from hypothesis import strategies as st

from domains.record_checks.dmarc import DmarcPolicy, find_dmarc_error, is_dmarc, parent_names, select_policy
from tests.rows import each


def test_the_tree_walk_visits_every_name_above_a_short_one():
    assert parent_names("a.mail.example.com") == ["mail.example.com", "example.com", "com"]


def test_the_tree_walk_skips_labels_of_a_name_with_eight_or_more():
    assert parent_names("a.b.c.d.e.f.g.com")[0] == "b.c.d.e.f.g.com"
    deep = parent_names("a.b.c.d.e.f.g.h.i.j.mail.example.com")
    assert (deep[0], len(deep)) == ("g.h.i.j.mail.example.com", 7)


POLICIES = [
    # psd by name, nearest first; the name of the policy that applies.
    ({}, None),
    ({"b.example.com": "", "example.com": ""}, "example.com"),
    ({"b.example.com": "n", "example.com": ""}, "b.example.com"),
    ({"example.com": "u", "com": "y"}, "example.com"),
    ({"com": "y"}, "com"),
]


@each(("found", "name"), POLICIES)
def test_the_policy_that_applies(found, name):
    policies = [DmarcPolicy(at, "v=DMARC1; p=none" + (f"; psd={psd}" if psd else "")) for at, psd in found.items()]
    policy = select_policy(policies)
    assert (policy and policy.name) == name


@given(st.text(max_size=200))
def test_any_text_is_checked_without_an_exception(text):
    error = find_dmarc_error(["v=DMARC1;" + text])
    assert error is None or error.endswith((".", "changed."))
    assert is_dmarc("v=DMARC1;" + text)


def test_a_long_list_of_addresses_is_checked_in_linear_time():
    import time

    started = time.monotonic()
    find_dmarc_error(["v=DMARC1; p=none; rua=" + "mailto:a@b.example," * 20_000 + "!"])
    find_dmarc_error(["v=DMARC1; p=none; fo=" + "1 :" * 50_000 + "x"])
    assert time.monotonic() - started < 1
