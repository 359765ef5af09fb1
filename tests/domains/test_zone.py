"""The zone of a domain and its provider are recognised by NS records."""

import pytest

from domains.dns_providers import PROVIDERS, find_provider
from domains.models import Domain
from tests.core.lib.nameserver import SERVFAIL
from tests.domains.conftest import NAME, Owner

pytestmark = pytest.mark.django_db

SERVERS = {
    "cloudflare": "ada.ns.cloudflare.com",
    "route53": "ns-2048.awsdns-64.co.uk",
    "godaddy": "ns37.domaincontrol.com",
    "namecheap": "dns1.registrar-servers.com",
    "google_cloud": "ns-cloud-b1.googledomains.com",
    "squarespace": "ns01.squarespacedns.com",
    "ionos": "ns1045.ui-dns.biz",
    "hetzner": "hydrogen.ns.hetzner.com",
    "azure": "ns1-03.azure-dns.com",
    "digitalocean": "ns1.digitalocean.com",
    "ovh": "dns106.ovh.net",
    "gandi": "ns-12-a.gandi.net",
    "dnsimple": "ns1.dnsimple.com",
    "vercel": "ns1.vercel-dns.com",
    "desec": "ns1.desec.io",
    "inwx": "ns.inwx.de",
    "strato": "docks19.rzone.de",
}


def test_each_provider_is_recognised_by_its_name_servers():
    assert {key: find_provider([server]) for key, server in SERVERS.items()} == {key: key for key in PROVIDERS}
    for name in ("ns1.example.com", "ns.cloudflare.com", "a.ns.cloudflare.com.example.com", "a.xns.cloudflare.com", ""):
        assert find_provider([name]) == "", name
    assert find_provider(["ns1.example.com", "ns2.gandi.net"]) == "gandi"
    assert find_provider([]) == ""


def zone_of(owner: Owner) -> tuple[str, str]:
    owner.verify()
    return Domain.objects.values_list("zone_name", "dns_provider").get(name=NAME)


def test_the_zone_is_the_closest_name_with_name_servers(owner, zone):
    assert zone_of(owner) == ("", "")
    zone.set("example.com", "NS", "ada.ns.cloudflare.com.", "bob.ns.cloudflare.com.")
    assert zone_of(owner) == ("example.com", "cloudflare")
    zone.set(NAME, "NS", "ns1.own.example.")
    assert zone_of(owner) == (NAME, "")


def test_a_failed_lookup_changes_nothing(owner, zone, dns):
    zone.set("example.com", "NS", "ns-12-a.gandi.net.")
    assert zone_of(owner) == ("example.com", "gandi")
    dns.put("example.com", {"NS": SERVFAIL})
    assert zone_of(owner) == ("example.com", "gandi")


def test_the_name_servers_of_the_target_of_a_cname_are_not_those_of_the_domain(owner, zone):
    zone.set("example.com", "NS", "ns-12-a.gandi.net.")
    zone.set(NAME, "CNAME", "shop.vercel.example.")
    zone.set("shop.vercel.example", "NS", "ns1.vercel-dns.com.")
    assert zone_of(owner) == ("example.com", "gandi")


def test_the_check_of_a_long_name_asks_for_a_bounded_number_of_names(owner, zone, dns):
    deep = f"{'a.' * 100}example.com"
    Owner(owner.api, zone, deep).verify()
    assert sum(kind == "NS" for name, kind, _ in dns.questions if name.endswith("a.example.com")) <= 4
