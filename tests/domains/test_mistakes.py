"""Common mistakes in published records, and the error of each."""

import asyncio
import time
from dataclasses import dataclass

import pytest

from domains.models import Domain
from domains.record_checks.dkim import check_dkim
from domains.record_checks.dmarc import add_report_address
from domains.record_checks.record_lookup import RecordLookup
from domains.record_checks.results import RecordStatus
from domains.reports.addresses import Kind, report_address
from tests.core.lib.nameserver import SERVFAIL, NameServer
from tests.domains.conftest import NAME, Owner
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture
def key(owner: Owner) -> dict:
    return owner.record("DKIM")


@pytest.mark.parametrize("suffix", [NAME, "example.com"])
def test_a_key_with_a_doubled_domain_name(owner: Owner, key, suffix):
    owner.zone.set(f"{key['fqdn']}.{suffix}", "TXT", key["value"])
    record = owner.verify_record("DKIM")
    assert record["status"] == "pending"
    assert f"It was found at {key['fqdn']}.{suffix}: your DNS provider appends the domain." in record["error"]


@pytest.mark.parametrize("kind", ["SPF", "DMARC", "ReturnPath"])
def test_other_records_with_a_doubled_domain_name(owner: Owner, kind):
    record = owner.record(kind)
    owner.zone.publish({**record, "fqdn": f"{record['fqdn']}.{NAME}"})
    assert f"It was found at {record['fqdn']}.{NAME}: your DNS provider" in owner.verify_record(kind)["error"]


def test_a_key_at_the_apex(owner: Owner, key):
    owner.zone.set(NAME, "TXT", key["value"])
    assert owner.verify_record("DKIM")["error"].endswith(
        f"It was found at {NAME}. Publish it at {key['fqdn']} instead."
    )


def test_a_key_without_the_sub_domain(owner: Owner, key):
    place = key["fqdn"].replace(NAME, "example.com")
    owner.zone.set(place, "TXT", key["value"])
    assert f"It was found at {place}, without the subdomain." in owner.verify_record("DKIM")["error"]


def test_a_key_without_its_middle_part(owner: Owner, key):
    place = key["fqdn"].replace("._domainkey", "")
    owner.zone.set(place, "TXT", key["value"])
    assert f"It was found at {place}. Publish it at" in owner.verify_record("DKIM")["error"]


def test_an_spf_record_at_the_parent(owner: Owner):
    owner.zone.set("example.com", "TXT", "v=spf1 mx include:_spf.service.example -all")
    assert "It was found at example.com, without the subdomain." in owner.verify_record("SPF")["error"]


def test_a_parents_spf_record_without_the_required_mechanisms_is_no_hint(owner: Owner):
    owner.zone.set("example.com", "TXT", "v=spf1 mx -all")
    assert owner.verify_record("SPF")["error"] == f"No SPF record found at {NAME}."


def test_a_failed_lookup_of_a_hint_is_ignored(owner: Owner, dns: NameServer):
    dns.put("example.com", SERVFAIL)
    assert owner.verify_record("SPF")["status"] == "pending"


def test_a_cname_at_the_domain_itself(owner: Owner, dns: NameServer):
    dns.put(NAME, {"CNAME": ["shop.elsewhere.example."]})
    dns.put("shop.elsewhere.example", {"A": ["192.0.2.7"]})
    error = owner.verify_record("SPF")["error"]
    message = f"{NAME} is a CNAME for shop.elsewhere.example. A sending domain cannot be one"
    assert message in error
    (warning,) = owner.body["warnings"]
    assert warning["code"] == "cname_at_domain"
    assert message in warning["message"]


def test_a_domain_that_does_not_exist(owner: Owner, dns: NameServer):
    dns.remove("example.com")
    owner.verify()
    errors = {record["error"] for record in owner.body["records"]}
    assert len(errors) == 1
    assert errors.pop().startswith("example.com does not exist in the DNS (NXDOMAIN). Check its spelling")
    assert {record["status"] for record in owner.body["records"]} == {"pending"}
    assert owner.body["warnings"] == []


def test_a_sub_domain_without_records_is_no_mistake(owner: Owner):
    assert owner.verify_record("SPF")["error"] == f"No SPF record found at {NAME}."


def test_name_servers_that_fail(owner: Owner, dns: NameServer):
    dns.put(NAME, SERVFAIL)
    error = owner.verify_record("SPF")["error"]
    assert error.startswith(f"The name servers answered with a failure ({NAME} TXT: NoNameservers, SERVFAIL).")
    assert "DNSSEC" in error


@pytest.mark.parametrize(("kind", "address"), [("A", "192.0.2.7"), ("AAAA", "2001:db8::7")])
def test_an_address_at_the_return_path(owner: Owner, kind, address):
    path = owner.record("ReturnPath")
    owner.zone.set(path["fqdn"], kind, address)
    record = owner.verify_record("ReturnPath")
    assert record["found"] == address
    assert record["error"].startswith(f"{path['fqdn']} has an address record ({address}) instead of a CNAME.")
    assert f"a CNAME for {path['value']}" in record["error"]


def test_a_domain_that_gets_no_replies(owner: Owner):
    (warning,) = owner.publish().verify()["warnings"]
    assert (owner.body["status"], warning["code"]) == ("verified", "no_mail_host")
    assert f"{NAME} has neither an MX nor an address record" in warning["message"]


@pytest.mark.parametrize(("kind", "row"), [("MX", "10 mx.example.com."), ("A", "192.0.2.7"), ("AAAA", "2001:db8::7")])
def test_a_domain_that_gets_replies(owner: Owner, kind, row):
    owner.zone.set(NAME, kind, row)
    assert owner.publish().verify()["warnings"] == []


def test_a_failed_lookup_of_mail_hosts_is_no_warning(owner: Owner, dns: NameServer):
    owner.publish()
    dns.put(NAME, {**dns.zones[NAME], "A": SERVFAIL})
    assert owner.verify()["warnings"] == []


KEYS = [
    ('"{value}"', "The value contains quotation marks or backslashes"),
    ('{start}" "{end}', "The value contains quotation marks or backslashes"),
    ("v=DKIM1\\; k=rsa\\; p={p}", "The value contains quotation marks or backslashes"),
    ("v=DKIM1; k=rsa; p=", "The key is revoked"),
    ("v=DKIM1; k=rsa", "it has no p= tag"),
    ("v=spf1 -all", "it has no p= tag"),
    ("v=DKIM1; k=rsa; p={cut}", "The key is truncated after 100 of 392 characters"),
    ("v=DKIM1; k=rsa; p=MIIBother", "contains a different key"),
    ("v=DKIM2; p={p}", "must begin with v=DKIM1"),
    ("k=rsa; v=DKIM1; p={p}", "must begin with v=DKIM1"),
    ("v=DKIM1; k=ed25519; p={p}", "The k= tag must be rsa"),
    ("v=DKIM1; h=sha1; p={p}", "h= does not include sha256"),
    ("v=DKIM1; s=tlsrpt; p={p}", "s= does not include email"),
    ("v=DKIM1; k=rsa; k=rsa; p={p}", "k= occurs more than once"),
    ("v=DKIM1; rsa; p={p}", "'rsa' has no ="),
    ("hello", "'hello' has no ="),
]


@each(("text", "message"), KEYS)
def test_an_invalid_key_record(owner: Owner, key, text, message):
    value = key["value"]
    public = value.partition("p=")[2]
    published = text.format(value=value, start=value[:200], end=value[200:], p=public, cut=public[:100])
    owner.publish().zone.set(key["fqdn"], "TXT", published)
    record = owner.verify_record("DKIM")
    assert (record["status"], record["found"]) == ("failed", published)
    assert message in record["error"]
    assert owner.body["status"] == "pending"


GOOD_KEYS = ["p={p}", "v=DKIM1;p={p}", "v=DKIM1; h=sha1:sha256; s=*; t=s; n=ours; p={split};", "v=DKIM1; x=y; p={p}"]


@pytest.mark.parametrize("text", GOOD_KEYS)
def test_a_valid_key_record_in_another_form(owner: Owner, key, text):
    public = key["value"].partition("p=")[2]
    owner.zone.set(key["fqdn"], "TXT", text.format(p=public, split=f"{public[:90]} {public[90:]}"))
    record = owner.verify_record("DKIM")
    assert (record["status"], record["error"], record["note"]) == ("verified", None, None)


def test_a_test_key_has_a_note(owner: Owner, key):
    owner.zone.set(key["fqdn"], "TXT", key["value"].replace("; p=", "; t=s:y; p="))
    record = owner.verify_record("DKIM")
    assert (record["status"], record["note"][:10]) == ("verified", "Remove t=y")


@dataclass(frozen=True)
class Answer:
    """A DNS answer longer than the test server sends."""

    text: str

    async def look_up_texts(self, name: str) -> tuple[str, ...]:
        return (self.text,)


@each("flags", [" " * 60_000, " :" * 30_000, f":{' ' * 60_000}"])
def test_a_key_record_of_64_kib_does_not_delay_other_work(flags):
    """All domain checks and deliveries of a worker share one thread."""
    lookup = RecordLookup(NAME, NAME, Answer(f"v=DKIM1; t={flags}; p=key"))
    started = time.thread_time()
    result = asyncio.run(check_dkim(lookup, fqdn=f"x._domainkey.{NAME}", public_key="key"))
    assert time.thread_time() - started < 1
    assert (result.status, result.note) == (RecordStatus.VALID, None)


def test_two_keys_at_one_name(owner: Owner, key):
    owner.zone.set(key["fqdn"], "TXT", key["value"], "v=DKIM1; k=rsa; p=MIIBother")
    assert "2 TXT records found" in owner.verify_record("DKIM")["error"]


# Published texts; value to publish instead; error.
SPF = [
    (["v=spf1 mx -all"], "v=spf1 include:_spf.service.example mx -all", "include:_spf.service.example is missing"),
    (["v=spf1 include:_spf.service.example"], None, None),
    (["V=SPF1 INCLUDE:_SPF.Service.Example -ALL"], None, None),
    (["v=spf1 +all"], "v=spf1 include:_spf.service.example ~all", "allows any server to send"),
    (
        ["v=spf1 include:_spf.service.example all"],
        "v=spf1 include:_spf.service.example ~all",
        "allows any server to send",
    ),
    (
        ["v=spf1 -all include:_spf.service.example"],
        "v=spf1 include:_spf.service.example -all",
        "has no effect in its position",
    ),
    (["v=spf1 ?include:_spf.service.example ~all"], "v=spf1 include:_spf.service.example ~all", "is missing"),
    (
        ["v=spf1 a:web.example.com include:_spf.service.example -all", "v=spf1 mx ~all"],
        "v=spf1 include:_spf.service.example a:web.example.com mx ~all",
        "2 SPF records found",
    ),
    (['"v=spf1 include:_spf.service.example ~all"'], "", "without quotation marks"),
    (["v=spf1; include:_spf.service.example ~all"], "", "must begin with v=spf1 and a space"),
    (["v=spf1 ipv4:192.0.2.1 ~all"], "", "'ipv4:192.0.2.1' is not an SPF mechanism"),
    (["v=spf1 ip4=192.0.2.1 ~all"], "", "'ip4=192.0.2.1' is not a valid ip4 mechanism"),
    (["v=spf1 ip4:192.0.2.1/33 ~all"], "", "is not a valid ip4 address or network"),
    (
        ["v=spf1 include:a.example,include:b.example ~all"],
        "",
        "'include:a.example,include:b.example' does not contain a valid domain name",
    ),
    (["v=spf1 include: ~all"], "", "is not a valid include mechanism"),
    (
        ["v=spf1 include:nowhere.example include:_spf.service.example ~all"],
        "",
        "include:nowhere.example has no SPF",
    ),
]


@pytest.mark.parametrize(("texts", "value", "message"), SPF)
def test_a_published_spf_record(owner: Owner, texts, value, message):
    generated = owner.record("SPF")["value"]
    owner.publish("DKIM").zone.set(NAME, "TXT", "unrelated", *texts)
    record = owner.verify_record("SPF")
    assert record["found"] == "\n".join(texts)
    assert record["value"] == (texts[0] if value is None else value or generated)
    if message is None:
        assert (record["status"], record["error"], owner.body["status"]) == ("verified", None, "verified")
        return
    assert (record["status"], owner.body["status"]) == ("failed", "pending")
    assert message in record["error"]


def test_the_proposed_spf_record_is_valid(owner: Owner):
    owner.publish("DKIM").zone.set(NAME, "TXT", "v=spf1 mx a -all")
    owner.zone.set(NAME, "MX", "10 mx.example.com.")
    owner.zone.set(NAME, "A", "192.0.2.3")
    record = owner.verify_record("SPF")
    assert "It will use 3 of the 10 DNS lookups." in record["error"]
    owner.zone.publish(record)
    assert owner.verify_record("SPF")["note"].startswith("This record uses 3 of the 10")
    assert owner.body["status"] == "verified"


def test_an_include_that_passes_every_server(owner: Owner):
    owner.zone.set("open.example", "TXT", "v=spf1 +all")
    owner.zone.set(NAME, "TXT", "v=spf1 include:_spf.service.example include:open.example -all")
    assert "A record that an include or a redirect leads to has +all" in owner.verify_record("SPF")["error"]


@pytest.mark.parametrize("published", ["ip4:10.1.2.3", "ip4:10.1.0.0/16", "ip4:10.0.0.0/8"])
def test_a_network_that_contains_the_required_one_is_enough(owner: Owner, settings, published):
    settings.SPF_MECHANISMS = "ip4:10.1.2.3"
    owner.zone.set(NAME, "TXT", f"v=spf1 {published} -all")
    assert owner.verify_record("SPF")["status"] == "verified"


def test_a_network_that_does_not_contain_the_required_one_is_not_enough(owner: Owner, settings):
    settings.SPF_MECHANISMS = "ip4:10.1.2.0/24"
    owner.zone.set(NAME, "TXT", "v=spf1 ip4:10.1.2.0/25 ip4:10.1.2.129 -all")
    assert owner.verify_record("SPF")["value"] == "v=spf1 ip4:10.1.2.0/24 ip4:10.1.2.0/25 ip4:10.1.2.129 -all"


DMARC = [
    ("v=DMARC1; p=reject; sp=none; np=reject; adkim=s; aspf=r; fo=1:d:s; t=y; psd=n", None),
    ("v=DMARC1; p=none; pct=50; rf=afrf; ri=86400; rua=mailto:a@example.com!10m, mailto:b@example.com", None),
    ("v=DMARC1;p=quarantine", None),
    ("v = DMARC1 ; p = none ;", None),
    ("v=DMARC1; rua=mailto:a@example.com", None),
    ("v=DMARC1; p=nothing", "p=nothing must be none, quarantine or reject."),
    ("v=DMARC1, p=none", "must begin with v=DMARC1;"),
    ("v=DMARC1; sp=none", "has no p="),
    ("v=DMARC1; p=none; rua=a@example.com", "rua=a@example.com must be addresses such as mailto:"),
    ("v=DMARC1; p=none; pct=101", "pct=101 must be a number from 0 to 100."),
    ("v=DMARC1; p=none; adkim=strict", "adkim=strict must be r or s."),
    ("v=DMARC1; p=none; p=reject", "p= occurs more than once"),
    ("p=none; v=DMARC1", "must begin with v=DMARC1;"),
    ('"v=DMARC1; p=none"', "must not contain quotation marks"),
    ("v=DMARC1\\; p=none", "must not contain quotation marks or backslashes"),
]


@each(("text", "message"), DMARC)
def test_a_published_dmarc_record(owner: Owner, text, message):
    owner.zone.set(f"_dmarc.{NAME}", "TXT", text)
    record = owner.verify_record("DMARC")
    assert record["found"] == text
    assert record["status"] == ("failed" if message else "verified")
    assert (message or "") in (record["error"] or "")
    address = report_address(Domain.objects.get(name=NAME), Kind.DMARC)
    assert record["value"] == add_report_address("v=DMARC1; p=none;" if message else text, address)


FOREIGN = f"{NAME}._report._dmarc"


@each(("tags", "records", "hosts"), [
    ("rua=mailto:a@reports.example", {}, "reports.example"),
    ("rua=mailto:a@Reports.example!10m", {f"{FOREIGN}.reports.example": "v=spf1 -all"}, "reports.example"),
    ("rua=mailto:a@reports.example; ruf=mailto:b@other.example", {f"{FOREIGN}.other.example": "v=DMARC1"},
     "reports.example"),
    ("rua=mailto:a@first.example,mailto:b@second.example", {}, "first.example, second.example"),
    # The domain itself and its parent need no record; a wildcard is one; nothing is known after a failure.
    ("rua=mailto:a@mail.example.com,mailto:b@example.com,mailto:c@x.example.com", {}, None),
    ("rua=mailto:a@reports.example", {f"{FOREIGN}.reports.example": "v=DMARC1;"}, None),
    ("rua=mailto:a@reports.example", {f"{FOREIGN}.reports.example": SERVFAIL}, None),
])  # fmt: skip
def test_reports_to_another_domain_need_its_record(owner: Owner, dns: NameServer, tags, records, hosts):
    owner.zone.set(f"_dmarc.{NAME}", "TXT", f"v=DMARC1; p=none; {tags}")
    for name, text in records.items():
        if isinstance(text, str):
            owner.zone.set(name, "TXT", text)
        else:
            dns.put(name, text)
    record = owner.verify_record("DMARC")
    assert record["status"] == "verified"
    if hosts is None:
        assert record["note"] is None
    else:
        first = hosts.split(",")[0]
        assert f"no reports to addresses at {hosts}, because" in record["note"]
        assert f"{FOREIGN}.{first} TXT v=DMARC1" in record["note"]


def test_reports_of_an_inherited_policy_are_permitted_for_its_domain(owner: Owner):
    owner.zone.set("_dmarc.example.com", "TXT", "v=DMARC1; p=reject; rua=mailto:a@reports.example")
    assert "example.com._report._dmarc.reports.example TXT v=DMARC1." in owner.verify_record("DMARC")["note"]
    assert FOREIGN not in owner.record("DMARC")["note"]


def test_a_long_list_of_report_domains_causes_few_lookups(owner: Owner, dns: NameServer):
    addresses = ",".join(f"mailto:a@r{number}.example" for number in range(60))
    owner.zone.set(f"_dmarc.{NAME}", "TXT", f"v=DMARC1; p=none; rua={addresses}")
    owner.verify_record("DMARC")
    assert len({str(one) for one in dns.questions if "_report" in str(one)}) <= 10


def test_two_dmarc_records(owner: Owner):
    owner.zone.set(f"_dmarc.{NAME}", "TXT", "v=DMARC1; p=none", "v=DMARC1; p=reject")
    assert "2 DMARC records found; receivers ignore all" in owner.verify_record("DMARC")["error"]


def test_a_policy_of_the_organizational_domain_applies(owner: Owner):
    owner.zone.set("_dmarc.example.com", "TXT", "v=DMARC1; p=reject")
    record = owner.verify_record("DMARC")
    assert (record["status"], record["found"]) == ("verified", "v=DMARC1; p=reject")
    assert record["note"] == "The policy of example.com applies to this domain. A separate record is not required."


def test_an_invalid_policy_of_the_organizational_domain_is_an_error(owner: Owner):
    owner.zone.set("_dmarc.example.com", "TXT", "v=DMARC1; p=some")
    record = owner.verify_record("DMARC")
    assert (record["status"], record["error"]) == (
        "failed",
        "At example.com: p=some must be none, quarantine or reject.",
    )


def test_a_return_path_that_points_elsewhere(owner: Owner):
    owner.zone.set(f"bounce.{NAME}", "CNAME", "bounce.other.example.")
    record = owner.verify_record("ReturnPath")
    assert (record["status"], record["found"]) == ("failed", "bounce.other.example")
    assert record["error"] == "The CNAME points to bounce.other.example. Change it to bounce.service.example."
    assert Domain.objects.get(id=owner.body["id"]).return_path_seen_at is None


def test_a_return_path_with_a_cname_loop(owner: Owner, dns: NameServer):
    dns.put(f"bounce.{NAME}", {"CNAME": [f"bounce.{NAME}."]})
    assert owner.verify_record("ReturnPath")["status"] in {"failed", "temporary_failure"}
