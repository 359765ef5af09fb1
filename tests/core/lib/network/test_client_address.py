"""Client address: headers written by the client itself are not trusted."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.lib.network.client_address import client_address, client_network
from tests.rows import each

PROXIES = [ip_network(text) for text in ("10.0.0.0/8", "2001:db8:aaaa::/48")]


@pytest.fixture(autouse=True)
def _behind_proxies(settings):
    settings.TRUSTED_PROXIES = PROXIES


def address(peer: str, forwarded: str | None = None) -> str:
    header = {} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded}
    return str(client_address({"REMOTE_ADDR": peer, **header}))


@each(("peer", "forwarded", "client"), [
    ("192.0.2.1", None, "192.0.2.1"), ("192.0.2.1", "198.51.100.1", "192.0.2.1"),
    ("192.0.2.1", "10.0.0.1", "192.0.2.1"), ("10.0.0.1", None, "10.0.0.1"), ("10.0.0.1", "", "10.0.0.1"),
    ("10.0.0.1", "198.51.100.1", "198.51.100.1"), ("10.0.0.1", "203.0.113.9, 198.51.100.1", "198.51.100.1"),
    ("10.0.0.1", "203.0.113.9,198.51.100.1 , 10.0.0.2", "198.51.100.1"), ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
    ("10.0.0.1", "198.51.100.1, unknown", "10.0.0.1"), ("10.0.0.1", "198.51.100.1, , 10.0.0.2", "10.0.0.2"),
    ("10.0.0.1", "198.51.100.1:4711", "198.51.100.1"), ("10.0.0.1", "[2001:db8::7]:4711", "2001:db8::7"),
    ("10.0.0.1", "[2001:db8::7]", "2001:db8::7"), ("10.0.0.1", "2001:db8::7", "2001:db8::7"),
    ("2001:db8:aaaa::1", "2001:db8::7, 2001:db8:aaaa::2", "2001:db8::7"),
    ("::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"), ("10.0.0.1", "0x7f.1", "10.0.0.1"),
    ("", "198.51.100.1", "None"), ("unix:", "198.51.100.1", "None"),
])  # fmt: skip
def test_the_right_most_address_that_is_no_proxy_is_the_client(peer, forwarded, client):
    assert address(peer, forwarded) == client


def test_without_trusted_proxies_the_peer_is_the_client(settings):
    settings.TRUSTED_PROXIES = []
    assert address("10.0.0.1", "198.51.100.1") == "10.0.0.1"


@each(("text", "network"), [
    ("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "2001:db8::/64"), ("2001:db8::ffff:0:0:1", "2001:db8::/64"),
    ("2001:db8:0:1::1", "2001:db8:0:1::/64"), ("fe80::1%eth0", "fe80::/64"), ("::1", "::/64"),
])  # fmt: skip
def test_an_ipv6_subscriber_is_one_client(text, network):
    assert client_network(ip_address(text)) == network


@given(st.text(max_size=60), st.ip_addresses(v=4))
def test_entries_to_the_left_of_the_client_change_nothing(spoofed, client):
    meta = {"REMOTE_ADDR": "10.0.0.1"}
    honest = client_address({**meta, "HTTP_X_FORWARDED_FOR": str(client)})
    if honest is not None and not any(honest in proxy for proxy in PROXIES):
        assert client_address({**meta, "HTTP_X_FORWARDED_FOR": f"{spoofed},{client}"}) == honest


@given(st.text())
def test_garbage_never_raises(text):
    client_address({"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": text})
    client_address({"REMOTE_ADDR": text})
