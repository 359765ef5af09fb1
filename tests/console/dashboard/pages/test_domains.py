from dataclasses import asdict

import dns.zone
import pytest
from django.db.models.functions import Now

from core.api.errors import RateLimitExceeded
from core.lib.coded_texts import CodedText, join_sentences
from domains.dns_providers import PROVIDERS
from domains.models import Domain, TrackingHost
from domains.record_checks.results import (
    HostCheck,
    RecordCheck,
    RecordStatus,
    VerificationResult,
    to_json,
)
from domains.records import list_records
from tests.conftest import make_domain
from tests.console.dashboard.conftest import shown_text
from tests.core.lib.nameserver import NameServer
from tests.domains.conftest import Zone, running_worker

committed = pytest.mark.django_db(transaction=True)


def test_adds_a_domain_and_shows_its_record(owner, alice):
    response = owner.post("/dashboard/domains/add/", {"name": "Mail.Bücher.Example"})

    domain = Domain.objects.get()
    assert (domain.name, domain.workspace) == ("mail.xn--bcher-kva.example", alice.workspace)
    page = owner.get(response.url).content.decode()
    assert f"{domain.dkim_keys.get().selector}._domainkey" in page
    assert "v=DKIM1; k=rsa; p=" in page
    assert "PRIVATE" not in page


def test_the_message_of_a_new_domain_names_the_next_step(owner, settings):
    for settings.SENDING_DOMAIN_POLICY, text in (
        ("registered", "You can send from it now."),
        ("verified", "Publish the DNS records below."),
    ):
        page = owner.post("/dashboard/domains/add/", {"name": "mail.example.com"}, follow=True).text
        assert f"mail.example.com was added. {text}" in page
        is_usable = settings.SENDING_DOMAIN_POLICY == "registered"
        assert ("you can send from this domain without DNS records" in page) == is_usable
        assert "already" in owner.post("/dashboard/domains/add/", {"name": "mail.example.com"}).text
        listed = owner.get("/dashboard/domains/").text
        assert "mail.example.com" in listed
        assert "pending" in listed
        Domain.objects.all().delete()


def test_refuses_an_invalid_domain(owner):
    for name in ("", "nonsense", "-x.example", "1.2.3.4", "a" * 300, "<script>.example"):
        assert "name" in owner.post("/dashboard/domains/add/", {"name": name}).context["form"].errors, name
    assert not Domain.objects.exists()


def test_a_full_plan_is_a_form_error(owner, alice):
    alice.workspace.plan = "free"
    alice.workspace.save(update_fields=["plan"])
    make_domain(alice.workspace, "mail.example.com")

    response = owner.post("/dashboard/domains/add/", {"name": "other.example.com"})

    assert "domain limit of the free plan (1)" in response.content.decode()


@pytest.fixture
def domain(alice, settings):
    settings.RETURN_PATH_DOMAIN = "bounce.postrider.example"
    return make_domain(alice.workspace, "mail.example.com")


@committed
def test_verifying_shows_found_and_expected_values(owner, domain, settings):
    settings.SPF_MECHANISMS = "ip4:192.0.2.1"
    with NameServer({domain.name: {"TXT": ['"v=spf1 -all"']}}) as server, running_worker():
        settings.DNS_SERVERS = [server.address]
        response = owner.post(f"/dashboard/domains/{domain.id}/verify/", follow=True)

    page = response.content.decode()
    assert "Change the published value of SPF to the one below" in page
    assert "v=spf1 ip4:192.0.2.1" in page
    assert "v=spf1 -all" in page
    assert [row.record.record for row in response.context["rows"] if row.error] == ["SPF"]
    assert "The records were checked just now." in page


@committed
def test_verifying_finds_published_records(owner, domain, settings):
    with NameServer() as server, running_worker():
        settings.DNS_SERVERS = [server.address]
        zone = Zone(server)
        for record in list_records(domain):
            zone.publish(asdict(record))
        page = owner.post(f"/dashboard/domains/{domain.id}/verify/", follow=True).content.decode()

    assert "mail.example.com is verified." in page
    assert Domain.objects.get().status == "verified"


def test_a_check_without_a_result_in_time_is_a_message(owner, domain, monkeypatch):
    monkeypatch.setattr("domains.check_queue.verify.MAX_WAIT_SECONDS", 0.0)

    page = owner.post(f"/dashboard/domains/{domain.id}/verify/", follow=True).content.decode()

    assert "The check is still running." in page


def test_too_many_checks_are_a_message(owner, domain, monkeypatch):
    def refuse(_):
        raise RateLimitExceeded("Ask again in a minute.")

    monkeypatch.setattr("console.dashboard.pages.domains.section.verify_domain", refuse)

    assert "Ask again in a minute." in owner.post(f"/dashboard/domains/{domain.id}/verify/", follow=True).text


def test_rotating_requires_confirmation_and_shows_both_keys(owner, domain):
    owner.get(f"/dashboard/domains/{domain.id}/rotate/")
    assert domain.dkim_keys.count() == 1
    domain.dkim_keys.update(seen_at=Now())

    page = owner.post(f"/dashboard/domains/{domain.id}/rotate/", follow=True).content.decode()

    assert domain.dkim_keys.count() == 2
    for selector in domain.dkim_keys.values_list("selector", flat=True):
        assert f"{selector}._domainkey" in page


def test_requiring_tls_is_a_switch(owner, domain):
    for tls, label in (("required", "Do not require TLS"), ("opportunistic", "Require TLS"), ("none", "Require TLS")):
        page = owner.post(f"/dashboard/domains/{domain.id}/tls/", {"tls": tls}, follow=True).content.decode()
        assert label in page
    domain.refresh_from_db()
    assert domain.tls == "opportunistic"


def tracking(owner, domain, **fields):
    form = {"subdomain": "", "open_tracking": "on", "click_tracking": "on", **fields}
    return owner.post(
        f"/dashboard/domains/{domain.id}/tracking/", {name: value for name, value in form.items() if value}
    )


def test_the_host_of_links_is_chosen_and_removed(owner, domain, settings):
    settings.TRACKING_HOST = "mail.service.example"
    page = owner.get(f"/dashboard/domains/{domain.id}/").content.decode()
    assert "Links in emails lead to this service." in page
    page = owner.get(tracking(owner, domain, subdomain="links").url).content.decode()
    assert "links.mail.example.com" in page
    assert "mail.service.example" in page
    assert "Gives the links in your emails your own name" in page
    assert 'value="links"' in owner.get(f"/dashboard/domains/{domain.id}/tracking/").content.decode()
    page = owner.get(tracking(owner, domain).url).content.decode()
    assert "Links in emails lead to this service." in page


def test_what_is_tracked_is_chosen(owner, domain):
    page = owner.get(tracking(owner, domain, click_tracking="").url).content.decode()
    assert ("Clicks are not tracked." in page, "Opens are not tracked." in page) == (True, False)
    domain.refresh_from_db()
    assert (domain.open_tracking, domain.click_tracking) == (True, False)


def test_an_invalid_or_taken_host_is_a_form_error(owner, domain, bob, settings):
    settings.TRACKING_HOST = "mail.service.example"
    for subdomain in ("a.b", "bounce", "-", "<b>"):
        assert "subdomain" in tracking(owner, domain, subdomain=subdomain).context["form"].errors, subdomain
    TrackingHost.objects.create(workspace=bob.workspace, name="links.mail.example.com", proven_at=Now())
    assert "belongs to another workspace" in tracking(owner, domain, subdomain="links").text


def test_deleting_requires_confirmation(owner, domain):
    assert "will be refused" in owner.get(f"/dashboard/domains/{domain.id}/delete/").content.decode()
    assert Domain.objects.exists()

    page = owner.post(f"/dashboard/domains/{domain.id}/delete/", follow=True).content.decode()

    assert "mail.example.com was deleted." in page
    assert not Domain.objects.exists()


def test_the_zone_file_has_every_record(owner, domain, settings):
    settings.RETURN_PATH_DOMAIN = "bounce.postrider.example"
    response = owner.get(f"/dashboard/domains/{domain.id}/zone/")
    zone = dns.zone.from_text(response.content.decode(), origin=domain.name, relativize=False, check_origin=False)
    key = domain.dkim_keys.get()

    assert response.headers["Content-Disposition"] == f'attachment; filename="{domain.name}.zone.txt"'
    found = {f"{name} {rdataset.rdtype.name}": rdataset[0] for name, rdataset in zone.iterate_rdatasets()}
    dkim = found[f"{key.selector}._domainkey.{domain.name}. TXT"]
    assert b"".join(dkim.strings).decode() == f"v=DKIM1; k=rsa; p={key.public_key}"
    assert len(dkim.strings) > 1
    assert str(found[f"bounce.{domain.name}. CNAME"].target) == "bounce.postrider.example."
    assert {f"{domain.name}. TXT", f"_dmarc.{domain.name}. TXT"} <= set(found)


def test_the_zone_file_permits_the_certificate_of_the_links(owner, domain, settings):
    settings.TRACKING_HOST, settings.TRACKING_CA = "mail.service.example", "letsencrypt.org"
    refused = RecordCheck(RecordStatus.INVALID, found='0 issue "other.example"')
    check = HostCheck("", refused, refused, authority=refused, authority_name=domain.name)
    values = {"workspace": domain.workspace, "name": "links.mail.example.com", "findings": to_json(check)}
    TrackingHost.objects.create(domain=domain, **values)
    zone = dns.zone.from_text(
        owner.get(f"/dashboard/domains/{domain.id}/zone/").content.decode(), origin=domain.name, check_origin=False
    )
    (record,) = zone.find_rdataset("@", "CAA")
    assert (record.flags, record.tag, record.value) == (0, b"issue", b"letsencrypt.org")


def test_records_that_exist_are_comments_in_the_zone_file(owner, domain):
    # A policy of the organizational domain applies: importing a weaker one would replace it.
    inherited, missing = RecordCheck(RecordStatus.VALID), RecordCheck(RecordStatus.MISSING)
    domain.findings = to_json(
        VerificationResult({domain.dkim_keys.get().selector: missing}, missing, inherited, missing, missing)
    )
    domain.save()
    lines = owner.get(f"/dashboard/domains/{domain.id}/zone/").content.decode().splitlines()

    assert [line[:2] == "; " for line in lines if "_dmarc." in line] == [True]
    assert [line[:2] == "; " for line in lines if "_domainkey." in line] == [False]


ABSENT = RecordCheck(RecordStatus.MISSING, error=CodedText("domains.absent", name="example.com"))
NO_TXT, NO_CNAME = (
    RecordCheck(RecordStatus.MISSING, error=CodedText(f"domains.{code}", name="x.example"))
    for code in ("no_txt", "no_cname")
)
ELSEWHERE = RecordCheck(
    RecordStatus.MISSING,
    error=join_sentences(
        CodedText("domains.no_txt", name="x"), CodedText("domains.found_elsewhere", place="y.example", name="x.example")
    ),
)
VALID = RecordCheck(RecordStatus.VALID)


def check(domain, dkim, spf, dmarc=VALID, return_path=VALID, *, status="pending"):
    """Record a check of the domain with these results."""
    result = VerificationResult({domain.dkim_keys.get().selector: dkim}, spf, dmarc, return_path, VALID)
    codes = [text.to_json() for text in result.messages()]
    domain.findings, domain.finding_codes, domain.status = to_json(result), codes, status
    domain.last_checked_at = domain.created_at
    domain.save()


class TestSummary:
    def sentence(self, owner, domain):
        """Return the sentence, and the records with a text of their own below it."""
        context = owner.get(f"/dashboard/domains/{domain.id}/").context
        return context["summary"].text, [row.record.record for row in context["rows"] if row.error]

    def test_before_the_first_check(self, owner, domain):
        assert self.sentence(owner, domain)[0].startswith("Publish these records where the DNS of mail.example.com")

    def test_four_missing_records_are_one_sentence(self, owner, domain):
        check(domain, NO_TXT, NO_TXT, NO_TXT, NO_CNAME)
        text = "None of the records is published yet. This page finds them by itself."
        assert self.sentence(owner, domain) == (text, [])
        page = owner.get(f"/dashboard/domains/{domain.id}/").text
        assert page.count("pr-badge pr-info") == 5
        assert "pr-danger" not in page

    def test_a_domain_that_does_not_exist(self, owner, domain):
        check(domain, ABSENT, ABSENT, ABSENT, ABSENT)
        text, rows = self.sentence(owner, domain)
        assert (text[:27], rows) == ("example.com does not exist ", [])

    def test_some_records_are_missing(self, owner, domain):
        check(domain, VALID, NO_TXT, NO_TXT)
        text, rows = self.sentence(owner, domain)
        assert (text[:63], rows) == ("2 of 4 records are published. Still missing: SPF, DMARC. This p", [])

    def test_a_hint_about_a_record_stays(self, owner, domain):
        check(domain, ELSEWHERE, NO_TXT)
        assert self.sentence(owner, domain)[1] == ["DKIM"]

    def test_a_verified_domain(self, owner, domain):
        check(domain, VALID, VALID, status="verified")
        assert self.sentence(owner, domain)[0].startswith("All records are published.")
        check(domain, VALID, VALID, NO_TXT, NO_CNAME, status="verified")
        assert self.sentence(owner, domain)[0].endswith("not published yet: DMARC, ReturnPath.")

    def test_a_lookup_that_fails(self, owner, domain):
        failed = RecordCheck(RecordStatus.UNKNOWN, error=CodedText("domains.lookup_failed", error="timeout"))
        check(domain, failed, failed, failed, failed)
        text, rows = self.sentence(owner, domain)
        assert (text[:21], rows) == ("The DNS lookup failed", [])


def test_the_provider_and_names_in_its_zone_are_shown(owner, domain):
    path = f"/dashboard/domains/{domain.id}/"
    page = shown_text(owner.get(path))
    assert "Most DNS providers append the domain automatically." in page
    Domain.objects.update(zone_name="example.com", dns_provider="cloudflare")
    response = owner.get(path)
    page = shown_text(response)
    assert "At Cloudflare, which manages example.com" in page
    assert "grey cloud" in page
    assert 'href="https://dash.cloudflare.com/"' in response.text
    names = [row.name for row in response.context["rows"]]
    assert names == [f"{domain.dkim_keys.get().selector}._domainkey.mail", "mail", "_dmarc.mail", "bounce.mail"]
    Domain.objects.update(zone_name="mail.example.com", dns_provider="of a later version")
    assert [row.name for row in owner.get(path).context["rows"]][1:] == ["@", "_dmarc", "bounce"]


def test_each_provider_has_its_notes(owner, domain):
    for key, provider in PROVIDERS.items():
        Domain.objects.update(zone_name="example.com", dns_provider=key)
        page = owner.get(f"/dashboard/domains/{domain.id}/").text
        assert f"Open {provider.name}" in page
        assert provider.url in page


def test_the_trial_needs_no_dns(owner, domain, settings):
    path, note = f"/dashboard/domains/{domain.id}/", "without DNS records"
    assert note in owner.get(path).content.decode()
    settings.DELIVERY_TRANSPORT = "direct"
    assert note not in owner.get(path).content.decode()
    assert "next check" in owner.get(path).content.decode()
