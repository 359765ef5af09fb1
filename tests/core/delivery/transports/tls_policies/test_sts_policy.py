"""MTA-STS records and policies: the examples of RFC 8461, and hostile ones."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.delivery.transports.tls_policies.sts_policy import (
    MAX_AGE_SECONDS,
    InvalidPolicy,
    StsMode,
    StsPolicy,
    parse_policy,
    read_record_id,
)
from tests.rows import each

# RFC 8461, section 3.2.
EXAMPLE = b"version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\nmx: *.example.net\r\n"
EXAMPLE += b"mx: backupmx.example.com\r\nmax_age: 604800\r\n"
VALID = b"version: STSv1\nmode: testing\nmx: mx.example.com\nmax_age: 86400\n"


class TestRecord:
    @each(("records", "expected"), [
        # RFC 8461, section 3.1.
        (["v=STSv1; id=20160831085700Z;"], "20160831085700Z"),
        (["v=STSv1; id=1"], "1"),
        (["v=STSv1 ;id=1 ; more=x"], "1"),
        (["v=spf1 -all", "v=STSv1; id=1;"], "1"),
        (["v=STSv1; more=x; id=1;"], "1"),
        (["v=STSv1; id=1; id=2;"], "1"),
        ([], None),
        (["v=STSv1; id=1;", "v=STSv1; id=2;"], None),
        (["v=STSv2; id=1;"], None),
        (["v=STSv1"], None),
        (["v=STSv1;"], None),
        (["v=STSv1; id=;"], None),
        (["v=STSv1; id=a-b;"], None),
        (["v=STSv1; id=" + "1" * 33], None),
        (["v=STSv1; id=1;;"], None),
        (["v=STSv1; id=1\x00"], None),
        (["id=1; v=STSv1;"], None),
    ])  # fmt: skip
    def test_has_an_id_or_is_none(self, records, expected):
        assert read_record_id(records) == expected


class TestPolicy:
    def test_of_the_rfc(self):
        mx = ("mail.example.com", "*.example.net", "backupmx.example.com")
        assert parse_policy(EXAMPLE) == StsPolicy(StsMode.ENFORCE, mx, 604_800)

    @each("body", [
        VALID,
        VALID.replace(b"\n", b"\r\n"),
        VALID.rstrip(),
        VALID + b"\n\n",
        VALID.replace(b": ", b":"),
        VALID.replace(b": ", b":  \t"),
        VALID.replace(b"\n", b" \n"),
        VALID + b"unknown_key: any value\xc3\xa4\n",
        VALID + b"mode: enforce\nversion: STSv2\nmax_age: 1\n",
        VALID.replace(b"mx.example.com", b"MX.Example.COM."),
    ])  # fmt: skip
    def test_is_the_same_in_each_spelling(self, body):
        assert parse_policy(body) == StsPolicy(StsMode.TESTING, ("mx.example.com",), 86_400)

    @each(("body", "reason"), [
        (b"", "version"),
        (VALID.replace(b"version: STSv1\n", b""), "version"),
        (VALID.replace(b"STSv1", b"stsv1"), "version"),
        (VALID.replace(b"testing", b"report"), "mode"),
        (VALID.replace(b"max_age: 86400\n", b""), "max_age"),
        (VALID.replace(b"86400", b"-1"), "max_age"),
        (VALID.replace(b"86400", b"1" * 11), "max_age"),
        (VALID.replace(b"86400", "٣".encode()), "max_age"),
        (VALID.replace(b"mx: mx.example.com\n", b""), "mail host"),
        (VALID.replace(b"mx.example.com", b"*"), "mail host"),
        (VALID.replace(b"mx.example.com", b"a.*.example.com"), "mail host"),
        (VALID.replace(b"mx.example.com", b"mx.example.com, mx2.example.com"), "mail host"),
        (VALID.replace(b"mx.example.com", b"x" * 300 + b".example.com"), "mail host"),
        (VALID.replace(b"mx.example.com", "mx.exämple.com".encode()), "mail host"),
        (VALID.replace(b"mx.example.com", b"mx.example.com\x00.attacker.test"), "Line 3"),
        (VALID.replace(b"\n", b"\r"), "Line 1"),
        (b"\xef\xbb\xbf" + VALID, "Line 1"),
        (VALID + b"<html>\n", "Line 5"),
        (VALID + b"\xff", "UTF-8"),
        (VALID + b"".join(b"mx: mx%d.example.com\n" % number for number in range(101)), "more than 100"),
    ])  # fmt: skip
    def test_that_is_invalid_is_refused_with_the_reason(self, body, reason):
        with pytest.raises(InvalidPolicy, match=reason):
            parse_policy(body)

    def test_lasts_a_year_at_most(self):
        assert parse_policy(VALID.replace(b"86400", b"9999999999")).max_age_seconds == MAX_AGE_SECONDS

    def test_that_ends_an_earlier_one_needs_no_mail_host(self):
        policy = parse_policy(b"version: STSv1\nmode: none\nmax_age: 86400\n")
        assert (policy.mode, policy.mx) == (StsMode.NONE, ())

    @each("filler", [b" " * 65_000, b"a" * 65_000, b"\n" * 65_000, b":" * 65_000, b"mx:" + b"\t" * 65_000])
    def test_of_64_kib_is_read_in_linear_time(self, filler):
        began = time.process_time()
        with contextlib.suppress(InvalidPolicy):
            parse_policy(VALID + filler)
        assert time.process_time() - began < 1.0

    @given(st.binary(max_size=300))
    def test_of_any_bytes_is_a_policy_or_refused(self, body):
        try:
            policy = parse_policy(VALID + body)
        except InvalidPolicy:
            return
        assert policy.mx[0] == "mx.example.com"


class TestMailHosts:
    @each(("host", "is_permitted"), [
        ("mail.example.com", True),
        ("MAIL.Example.com.", True),
        ("mx1.example.net", True),
        # RFC 8461, section 4.1: one label.
        ("a.mx1.example.net", False),
        ("example.net", False),
        ("mail.example.com.attacker.test", False),
        ("xexample.net", False),
        ("", False),
    ])  # fmt: skip
    def test_are_matched_by_whole_labels(self, host, is_permitted):
        assert parse_policy(EXAMPLE).permits(host) is is_permitted
