"""The answers that the operators of block lists document, and the names and pages of lists."""

import pytest

from core.delivery.sources.blocklists import REMOVAL_PAGES, list_name, read_codes, removal_url
from tests.rows import each

KEY = "abcdefghijklmnopqrstuvwxyz"


# docs.spamhaus.com, Datasets, Available Zones: zen; spamcop.net/bl.shtml; barracudacentral.org/rbl/how-to-use.
@each("codes", [
    ["127.0.0.2"], ["127.0.0.3"], ["127.0.0.4"], ["127.0.0.2", "127.0.0.9"], ["127.0.0.10"], ["127.0.0.11"],
    ["127.0.0.30"], ["127.0.0.3", "127.0.0.4", "127.0.0.10"], ["127.0.1.2"], ["127.1.0.0"],
])  # fmt: skip
def test_a_documented_code_is_a_listing(codes):
    answer = read_codes(codes)
    assert (answer.is_listed, answer.codes, answer.error) == (True, tuple(sorted(codes)), "")


# spamhaus.org, "Using our public mirrors? Check your return codes now"; uribl.com/refused; RFC 5782, section 5.
@each(("codes", "error"), [
    (["127.255.255.252"], "misspelt"),
    (["127.255.255.254"], "public resolvers"),
    (["127.255.255.255"], "further queries"),
    (["127.255.255.250"], "refuses the query"),
    (["127.0.0.1"], "refuses the query"),
    (["127.0.0.2", "127.255.255.254"], "public resolvers"),
    # Resolvers that replace NXDOMAIN.
    (["203.0.113.7"], "outside of 127.0.0.0/8"),
    (["0.0.0.0"], "outside of 127.0.0.0/8"),
    (["127.0.0.2", "203.0.113.7"], "outside of 127.0.0.0/8"),
])  # fmt: skip
def test_a_refused_query_is_no_listing_and_no_delisting(codes, error):
    answer = read_codes(codes)
    assert answer.is_listed is None
    assert error in answer.error
    assert answer.codes == tuple(sorted(codes))


def test_no_code_means_not_listed():
    assert read_codes([]).is_listed is False


@each(("zone", "name"), [
    ("zen.spamhaus.org", "zen.spamhaus.org"),
    (f"{KEY}.zen.dq.spamhaus.net", "zen.dq.spamhaus.net"),
    ("0123456789abcdef0123456789abcdef.combined.mail.abusix.zone", "combined.mail.abusix.zone"),
    ("b.barracudacentral.org", "b.barracudacentral.org"),
])  # fmt: skip
def test_the_name_of_a_list_has_no_key(zone, name):
    assert list_name(zone) == name


@each(("name", "url"), [
    ("zen.spamhaus.org", "https://check.spamhaus.org/results/?query=192.0.2.1"),
    ("zen.dq.spamhaus.net", "https://check.spamhaus.org/results/?query=192.0.2.1"),
    ("bl.spamcop.net", "https://www.spamcop.net/w3m?action=checkblock&ip=192.0.2.1"),
    ("b.barracudacentral.org", "https://www.barracudacentral.org/rbl/removal-request"),
    ("notspamhaus.org", ""),
    ("bl.example.net", ""),
])  # fmt: skip
def test_each_default_list_has_a_page_for_removals(name, url):
    assert removal_url(name, "192.0.2.1") == url


@pytest.mark.parametrize("page", REMOVAL_PAGES, ids=lambda page: page.suffix)
def test_pages_are_https_and_take_no_other_field(page):
    assert page.url.format(address="2001:db8::1").startswith("https://")
