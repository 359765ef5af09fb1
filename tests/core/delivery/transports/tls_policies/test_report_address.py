"""Addresses for TLS reports (RFC 8460, section 3)."""

from core.delivery.transports.tls_policies.report_address import read_report_address
from tests.rows import each


@each(("record", "address"), [
    ("v=TLSRPTv1; rua=mailto:tls@example.com", "mailto:tls@example.com"),
    ("v=TLSRPTv1;rua=mailto:tls@example.com;", "mailto:tls@example.com"),
    ("v=TLSRPTv1 ; x=1; rua=https://example.com/v1 , mailto:tls@example.com", "mailto:tls@example.com"),
    ("v=TLSRPTv1; rua=https://example.com/v1?a=1%2c2,https://example.org/", "https://example.com/v1?a=1%2c2"),
    ("v=TLSRPTv1; rua=MAILTO:a%2Bb@Example.com?subject=x", "mailto:a+b@example.com"),
    ("v=TLSRPTv1; rua=mailto:nobody,mailto:tls@example.com", "mailto:tls@example.com"),
    ("v=TLSRPTv1; rua=http://example.com/", ""),
    ("v=TLSRPTv1; rua=mailto:Ada <tls@example.com>", ""),
    ("v=TLSRPTv1; rua=mailto:a@example.com%0d%0aBcc:%20b@example.com", ""),
    ("v=TLSRPTv1; rua=https:///path", ""),
    ("v=TLSRPTv1; rua=https://[::1/", ""),
    ("v=TLSRPTv1; rua=https://example.com/" + "a" * 500, ""),
    ("v=TLSRPTv1; rua=", ""),
    ("v=TLSRPTv1;", ""),
    ("v=TLSRPTv1", ""),
    ("v=spf1 -all", ""),
])  # fmt: skip
def test_the_first_address_counts_else_the_first_url(record, address):
    assert read_report_address([record]) == address


def test_other_records_are_ignored_and_two_are_none():
    record = "v=TLSRPTv1; rua=mailto:tls@example.com"
    assert read_report_address(["v=spf1 -all", record]) == "mailto:tls@example.com"
    assert read_report_address([record, record]) == ""
    assert read_report_address([]) == ""
