"""Guard for outbound connections, against the tables in `targets` and arbitrary addresses."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.lib.network.address_guard import (
    ISATAP_IDENTIFIERS,
    PRIVATE_NETWORKS,
    REFUSED_NETWORKS,
    Address,
    AddressRefused,
    Guard,
    HostRefused,
    Network,
    TargetRefused,
    unwrap,
)
from tests.core.lib import targets
from tests.rows import each

PUBLIC = ip_address("8.8.8.8")
PUBLIC_V6 = ip_address("2001:4860:4860::8888")
INSIDE = ip_address("10.0.0.1")
MAPPED = int(IPv6Address("::ffff:0:0"))
EVERY_NETWORK = [network for network, _reason in REFUSED_NETWORKS + PRIVATE_NETWORKS]

guard = Guard()
trial = Guard(allow_private=True)


@st.composite
def addresses_inside(draw: st.DrawFn, networks: list[Network]) -> Address:
    network = draw(st.sampled_from(networks))
    return draw(st.ip_addresses(network=str(network)))


def mapped(address: IPv4Address) -> IPv6Address:
    return IPv6Address(MAPPED + int(address))


@each("text", targets.REFUSED_ADDRESSES)
def test_address_is_refused_with_a_reason(text: str) -> None:
    assert guard.refusal_reason(ip_address(text))
    with pytest.raises(AddressRefused):
        guard.check_addresses([ip_address(text)])


@each("text", targets.ALLOWED_ADDRESSES)
def test_address_is_allowed(text: str) -> None:
    assert guard.refusal_reason(ip_address(text)) is None


@each("host", targets.REFUSED_HOSTS)
def test_malformed_or_internal_host_is_refused(host: str) -> None:
    with pytest.raises(HostRefused):
        guard.check_host(host)


@each("host", targets.REFUSED_LITERALS)
def test_literal_is_refused_for_its_address(host: str) -> None:
    with pytest.raises(AddressRefused):
        guard.check_host(host)


@each(("host", "name"), targets.ALLOWED_HOSTS)
def test_name_is_returned_in_a_labels(host: str, name: str) -> None:
    assert guard.check_host(host) == name


@each(("host", "address"), targets.ALLOWED_LITERALS)
def test_literal_is_returned_as_an_address(host: str, address: str) -> None:
    assert guard.check_host(host) == ip_address(address)


@each("host", targets.PRIVATE_TARGETS)
def test_private_target_is_allowed_on_a_trial_only(host: str) -> None:
    assert trial.check_host(host)
    with pytest.raises(TargetRefused):
        guard.check_host(host)


@each("host", targets.ALWAYS_REFUSED_TARGETS)
def test_trial_refuses_all_other_targets(host: str) -> None:
    with pytest.raises(TargetRefused):
        trial.check_host(host)


def test_tables_have_at_least_120_entries() -> None:
    refused = targets.REFUSED_ADDRESSES + targets.REFUSED_HOSTS + targets.REFUSED_LITERALS
    assert len(set(refused)) >= 120


def test_all_answers_allowed_are_returned_in_order() -> None:
    assert guard.check_addresses([PUBLIC, PUBLIC_V6]) == (PUBLIC, PUBLIC_V6)


def test_mapped_answer_is_returned_as_the_address_connected_to() -> None:
    assert guard.check_addresses([ip_address("::ffff:8.8.8.8")]) == (PUBLIC,)


@each("answers", [[INSIDE, PUBLIC], [PUBLIC, INSIDE], [PUBLIC, PUBLIC_V6, INSIDE]])
def test_one_refused_answer_refuses_all(answers: list[Address]) -> None:
    with pytest.raises(AddressRefused):
        guard.check_addresses(answers)


def test_no_answer_is_refused() -> None:
    with pytest.raises(AddressRefused):
        guard.check_addresses([])


def test_answers_may_be_read_once_only() -> None:
    with pytest.raises(AddressRefused):
        guard.check_addresses(iter([PUBLIC, INSIDE]))


@each("text", ["8.8.8.8", "::ffff:8.8.8.8", "2001:4860:4860::8888"])
def test_own_address_is_refused_in_every_spelling(text: str) -> None:
    ours = Guard(own=frozenset({PUBLIC, PUBLIC_V6}))
    assert ours.refusal_reason(ip_address(text))
    assert guard.refusal_reason(ip_address(text)) is None


def test_own_address_stays_refused_on_a_trial() -> None:
    ours = Guard(own=frozenset({INSIDE}), allow_private=True)
    assert ours.refusal_reason(INSIDE)
    assert ours.refusal_reason(ip_address("10.0.0.2")) is None


def test_refusal_does_not_reveal_the_address() -> None:
    with pytest.raises(AddressRefused) as refused:
        guard.check_addresses([INSIDE])
    assert str(refused.value) == "address not allowed"
    assert "10.0.0.1" in refused.value.reason


@given(st.ip_addresses(v=4))
def test_mapped_address_is_checked_as_its_ipv4_address(address: IPv4Address) -> None:
    for checker in (guard, trial):
        assert checker.refusal_reason(mapped(address)) == checker.refusal_reason(address)


@given(addresses_inside([network for network in EVERY_NETWORK if network.version == 4]))
def test_mapped_address_of_a_refused_network_is_refused(address: IPv4Address) -> None:
    assert guard.refusal_reason(mapped(address))


@given(addresses_inside(EVERY_NETWORK))
def test_every_address_inside_a_refused_network_is_refused(address: Address) -> None:
    assert guard.refusal_reason(address)


@given(addresses_inside([network for network, _reason in REFUSED_NETWORKS]))
def test_trial_refuses_every_address_inside_a_refused_network(address: Address) -> None:
    assert trial.refusal_reason(address)


@given(st.ip_addresses(v=6))
def test_ipv6_outside_global_unicast_is_refused(address: IPv6Address) -> None:
    is_outside = int(address) >> 125 != 1 and unwrap(address) is address
    assert guard.refusal_reason(address) or not is_outside


@given(st.integers(0, 2**64 - 1), st.sampled_from(sorted(ISATAP_IDENTIFIERS)), st.ip_addresses(v=4))
def test_isatap_is_refused_under_any_prefix(prefix: int, word: int, inner: IPv4Address) -> None:
    address = IPv6Address(prefix << 64 | word << 32 | int(inner))
    assert guard.refusal_reason(address)
    assert trial.refusal_reason(address)


@given(st.ip_addresses())
def test_literal_is_checked_as_its_address(address: Address) -> None:
    host = f"[{address}]" if isinstance(address, IPv6Address) else str(address)
    if guard.refusal_reason(address):
        with pytest.raises(AddressRefused):
            guard.check_host(host)
    else:
        assert guard.check_host(host) == unwrap(address)


@given(st.text())
def test_any_text_is_refused_or_normalized_to_a_stable_target(host: str) -> None:
    try:
        target = guard.check_host(host)
    except TargetRefused:
        return
    assert guard.check_host(str(target)) == target


@given(st.ip_addresses(v=4), st.sampled_from(["{:d}", "0x{:x}", "0{:o}"]))
def test_address_as_one_number_is_refused(address: IPv4Address, spelling: str) -> None:
    with pytest.raises(HostRefused):
        guard.check_host(spelling.format(int(address)))
