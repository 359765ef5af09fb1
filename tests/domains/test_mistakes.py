"""What people get wrong when they publish records, and what they are told."""

import pytest

from domains.models import Domain
from tests.domains.conftest import NAME, Owner
from tests.lib.nameserver import NameServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def key(owner: Owner) -> dict:
    return owner.record("DKIM")


@pytest.mark.parametrize("suffix", [NAME, "example.com"])
def test_a_name_that_the_dns_form_has_doubled(owner: Owner, key, suffix):
    owner.zone.set(f"{key['fqdn']}.{suffix}", "TXT", key["value"])
    record = owner.look("DKIM")
    assert record["status"] == "pending"
    assert f"It is at {key['fqdn']}.{suffix}: the DNS form adds the domain by itself." in record["error"]


@pytest.mark.parametrize("kind", ["SPF", "DMARC", "ReturnPath"])
def test_other_doubled_names(owner: Owner, kind):
    record = owner.record(kind)
    owner.zone.publish({**record, "fqdn": f"{record['fqdn']}.{NAME}"})
    assert f"It is at {record['fqdn']}.{NAME}: the DNS form" in owner.look(kind)["error"]


def test_a_key_at_the_apex(owner: Owner, key):
    owner.zone.set(NAME, "TXT", key["value"])
    assert owner.look("DKIM")["error"].endswith(f"It is at {NAME} itself; publish it at {key['fqdn']}.")


def test_a_key_without_the_sub_domain(owner: Owner, key):
    place = key["fqdn"].replace(NAME, "example.com")
    owner.zone.set(place, "TXT", key["value"])
    assert f"It is at {place}, without the sub-domain;" in owner.look("DKIM")["error"]


def test_a_key_without_its_middle_part(owner: Owner, key):
    place = key["fqdn"].replace("._domainkey", "")
    owner.zone.set(place, "TXT", key["value"])
    assert f"It is at {place}; publish it at" in owner.look("DKIM")["error"]


def test_an_spf_record_at_the_parent(owner: Owner):
    owner.zone.set("example.com", "TXT", "v=spf1 mx include:_spf.service.example -all")
    assert "It is at example.com, without the sub-domain;" in owner.look("SPF")["error"]


def test_a_parents_spf_record_without_us_is_no_hint(owner: Owner):
    owner.zone.set("example.com", "TXT", "v=spf1 mx -all")
    assert owner.look("SPF")["error"] == f"There is no SPF record at {NAME}."


def test_hints_need_no_answer(owner: Owner, dns: NameServer):
    from tests.lib.nameserver import SERVFAIL

    dns.put("example.com", SERVFAIL)
    assert owner.look("SPF")["status"] == "pending"


def test_a_cname_at_the_domain_itself(owner: Owner, dns: NameServer):
    dns.put(NAME, {"CNAME": ["shop.elsewhere.example."]})
    dns.put("shop.elsewhere.example", {"A": ["192.0.2.7"]})
    error = owner.look("SPF")["error"]
    assert f"{NAME} is a CNAME of shop.elsewhere.example, and beside a CNAME no other record can stand" in error


KEYS = [
    ('"{value}"', "The value holds quotation marks or backslashes"),
    ('{start}" "{end}', "The value holds quotation marks or backslashes"),
    ("v=DKIM1\\; k=rsa\\; p={p}", "The value holds quotation marks or backslashes"),
    ("v=DKIM1; k=rsa; p=", "The key is revoked"),
    ("v=DKIM1; k=rsa", "it has no p="),
    ("v=spf1 -all", "it has no p="),
    ("v=DKIM1; k=rsa; p={cut}", "The key is cut off after 100 of 392 characters"),
    ("v=DKIM1; k=rsa; p=MIIBother", "has another key"),
    ("v=DKIM2; p={p}", "must begin with v=DKIM1"),
    ("k=rsa; v=DKIM1; p={p}", "must begin with v=DKIM1"),
    ("v=DKIM1; k=ed25519; p={p}", "k= must be rsa"),
    ("v=DKIM1; h=sha1; p={p}", "h= leaves out sha256"),
    ("v=DKIM1; s=tlsrpt; p={p}", "s= leaves out email"),
    ("v=DKIM1; k=rsa; k=rsa; p={p}", "k= stands twice"),
    ("v=DKIM1; rsa; p={p}", "'rsa' has no ="),
    ("hello", "'hello' has no ="),
]


@pytest.mark.parametrize(("text", "sentence"), KEYS, ids=[str(number) for number in range(len(KEYS))])
def test_a_key_record_that_does_not_verify_our_signatures(owner: Owner, key, text, sentence):
    value = key["value"]
    public = value.partition("p=")[2]
    published = text.format(value=value, start=value[:200], end=value[200:], p=public, cut=public[:100])
    owner.publish().zone.set(key["fqdn"], "TXT", published)
    record = owner.look("DKIM")
    assert (record["status"], record["found"]) == ("failed", published)
    assert sentence in record["error"]
    assert owner.body["status"] == "pending"


GOOD_KEYS = ["p={p}", "v=DKIM1;p={p}", "v=DKIM1; h=sha1:sha256; s=*; t=s; n=ours; p={split};", "v=DKIM1; x=y; p={p}"]


@pytest.mark.parametrize("text", GOOD_KEYS)
def test_a_key_record_written_in_another_way(owner: Owner, key, text):
    public = key["value"].partition("p=")[2]
    owner.zone.set(key["fqdn"], "TXT", text.format(p=public, split=f"{public[:90]} {public[90:]}"))
    record = owner.look("DKIM")
    assert (record["status"], record["error"], record["note"]) == ("verified", None, None)


def test_a_key_that_is_on_trial_is_told(owner: Owner, key):
    owner.zone.set(key["fqdn"], "TXT", key["value"].replace("; p=", "; t=s:y; p="))
    record = owner.look("DKIM")
    assert (record["status"], record["note"][:3]) == ("verified", "t=y")


def test_two_keys_at_one_name(owner: Owner, key):
    owner.zone.set(key["fqdn"], "TXT", key["value"], "v=DKIM1; k=rsa; p=MIIBother")
    assert "There are 2 TXT records" in owner.look("DKIM")["error"]


# What stands there; what to publish in its place; what is said.
SPF = [
    (["v=spf1 mx -all"], "v=spf1 include:_spf.service.example mx -all", "include:_spf.service.example is missing"),
    (["v=spf1 include:_spf.service.example"], None, None),
    (["V=SPF1 INCLUDE:_SPF.Service.Example -ALL"], None, None),
    (["v=spf1 +all"], "v=spf1 include:_spf.service.example ~all", "lets the whole world send"),
    (["v=spf1 include:_spf.service.example all"], "v=spf1 include:_spf.service.example ~all", "lets the whole world"),
    (
        ["v=spf1 -all include:_spf.service.example"],
        "v=spf1 include:_spf.service.example -all",
        "stands where it never counts",
    ),
    (["v=spf1 ?include:_spf.service.example ~all"], "v=spf1 include:_spf.service.example ~all", "is missing"),
    (
        ["v=spf1 a:web.example.com include:_spf.service.example -all", "v=spf1 mx ~all"],
        "v=spf1 include:_spf.service.example a:web.example.com mx ~all",
        "There are 2 SPF records",
    ),
    (['"v=spf1 include:_spf.service.example ~all"'], "", "without quotation marks"),
    (["v=spf1; include:_spf.service.example ~all"], "", "must begin with v=spf1 and a blank"),
    (["v=spf1 ipv4:192.0.2.1 ~all"], "", "'ipv4:192.0.2.1' is not an SPF mechanism"),
    (["v=spf1 ip4=192.0.2.1 ~all"], "", "'ip4=192.0.2.1' is not written as SPF wants ip4"),
    (["v=spf1 ip4:192.0.2.1/33 ~all"], "", "is not an address or network of ip4"),
    (["v=spf1 include:a.example,include:b.example ~all"], "", "'a.example,include:b.example' names no domain"),
    (["v=spf1 include: ~all"], "", "is not written as SPF wants include"),
    (
        ["v=spf1 include:nowhere.example include:_spf.service.example ~all"],
        "",
        "include:nowhere.example leads to no SPF",
    ),
]


@pytest.mark.parametrize(("texts", "value", "sentence"), SPF, ids=[str(number) for number in range(len(SPF))])
def test_an_spf_record_that_is_there(owner: Owner, texts, value, sentence):
    generated = owner.record("SPF")["value"]
    owner.publish("DKIM").zone.set(NAME, "TXT", "unrelated", *texts)
    record = owner.look("SPF")
    assert record["found"] == "\n".join(texts)
    assert record["value"] == (texts[0] if value is None else value or generated)
    if sentence is None:
        assert (record["status"], record["error"], owner.body["status"]) == ("verified", None, "verified")
        return
    assert (record["status"], owner.body["status"]) == ("failed", "pending")
    assert sentence in record["error"]


def test_the_record_that_is_proposed_verifies(owner: Owner):
    owner.publish("DKIM").zone.set(NAME, "TXT", "v=spf1 mx a -all")
    owner.zone.set(NAME, "MX", "10 mx.example.com.")
    owner.zone.set(NAME, "A", "192.0.2.3")
    record = owner.look("SPF")
    assert "With it the record takes 3 of 10 DNS look-ups." in record["error"]
    owner.zone.publish(record)
    assert owner.look("SPF")["note"].startswith("It takes 3 of the 10")
    assert owner.body["status"] == "verified"


def test_an_include_that_lets_everybody_pass(owner: Owner):
    owner.zone.set("open.example", "TXT", "v=spf1 +all")
    owner.zone.set(NAME, "TXT", "v=spf1 include:_spf.service.example include:open.example -all")
    assert "It includes a record with +all" in owner.look("SPF")["error"]


@pytest.mark.parametrize("published", ["ip4:10.1.2.3", "ip4:10.1.0.0/16", "ip4:10.0.0.0/8"])
def test_a_network_that_holds_ours_is_enough(owner: Owner, settings, published):
    settings.SPF_MECHANISMS = "ip4:10.1.2.3"
    owner.zone.set(NAME, "TXT", f"v=spf1 {published} -all")
    assert owner.look("SPF")["status"] == "verified"


def test_a_network_beside_ours_is_not(owner: Owner, settings):
    settings.SPF_MECHANISMS = "ip4:10.1.2.0/24"
    owner.zone.set(NAME, "TXT", "v=spf1 ip4:10.1.2.0/25 ip4:10.1.2.129 -all")
    assert owner.look("SPF")["value"] == "v=spf1 ip4:10.1.2.0/24 ip4:10.1.2.0/25 ip4:10.1.2.129 -all"


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
    ("v=DMARC1; p=none; p=reject", "p= stands twice"),
    ("p=none; v=DMARC1", "must begin with v=DMARC1;"),
    ('"v=DMARC1; p=none"', "hold no quotation marks"),
    ("v=DMARC1\\; p=none", "hold no quotation marks or backslashes"),
]


@pytest.mark.parametrize(("text", "sentence"), DMARC, ids=[str(number) for number in range(len(DMARC))])
def test_a_dmarc_record_that_is_there(owner: Owner, text, sentence):
    owner.zone.set(f"_dmarc.{NAME}", "TXT", text)
    record = owner.look("DMARC")
    assert record["found"] == text
    assert record["status"] == ("failed" if sentence else "verified")
    assert (sentence or "") in (record["error"] or "")
    assert record["value"] == ("v=DMARC1; p=none;" if sentence else text)


def test_two_dmarc_records(owner: Owner):
    owner.zone.set(f"_dmarc.{NAME}", "TXT", "v=DMARC1; p=none", "v=DMARC1; p=reject")
    assert "There are 2 DMARC records; receivers count none" in owner.look("DMARC")["error"]


def test_a_policy_of_the_organisational_domain_counts(owner: Owner):
    owner.zone.set("_dmarc.example.com", "TXT", "v=DMARC1; p=reject")
    record = owner.look("DMARC")
    assert (record["status"], record["found"]) == ("verified", "v=DMARC1; p=reject")
    assert record["note"] == "The policy of example.com counts for this domain; a record of its own is not needed."


def test_a_broken_policy_of_the_organisational_domain_is_told(owner: Owner):
    owner.zone.set("_dmarc.example.com", "TXT", "v=DMARC1; p=some")
    record = owner.look("DMARC")
    assert (record["status"], record["error"]) == (
        "failed",
        "At example.com: p=some must be none, quarantine or reject.",
    )


def test_a_return_path_that_points_elsewhere(owner: Owner):
    owner.zone.set(f"bounce.{NAME}", "CNAME", "bounce.other.example.")
    record = owner.look("ReturnPath")
    assert (record["status"], record["found"]) == ("failed", "bounce.other.example")
    assert record["error"] == "It points to bounce.other.example; let it point to bounce.service.example."
    assert Domain.objects.get(id=owner.body["id"]).return_path_seen_at is None


def test_a_return_path_that_runs_in_a_circle(owner: Owner, dns: NameServer):
    dns.put(f"bounce.{NAME}", {"CNAME": [f"bounce.{NAME}."]})
    assert owner.look("ReturnPath")["status"] in {"failed", "temporary_failure"}
