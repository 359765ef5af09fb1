"""DNS providers, recognised by the names of their name servers, and the peculiarities of their forms."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DnsProvider:
    """A DNS provider.

    servers: matches the names of its name servers.
    url: the page where its customers enter records.
    notes: codes of the peculiarities of its form; their texts are in console.dashboard.pages.domains.records.
    """

    name: str
    servers: re.Pattern[str]
    url: str
    notes: tuple[str, ...] = field(default=())


def _below(*domains: str) -> re.Pattern[str]:
    return re.compile(rf".*\.(?:{'|'.join(map(re.escape, domains))})")


# The keys are stored with domains.
PROVIDERS = {
    "cloudflare": DnsProvider(
        "Cloudflare", _below("ns.cloudflare.com"), "https://dash.cloudflare.com/", ("no_proxy", "one_piece")
    ),
    "route53": DnsProvider(
        "Amazon Route 53",
        re.compile(r"ns-\d+\.awsdns-\d+\.[a-z.]+"),
        "https://console.aws.amazon.com/route53/v2/hostedzones",
        ("empty_name", "split_quotes"),
    ),
    "godaddy": DnsProvider(
        "GoDaddy", _below("domaincontrol.com"), "https://dcc.godaddy.com/control/portfolio", ("one_piece",)
    ),
    "namecheap": DnsProvider(
        "Namecheap",
        _below("registrar-servers.com"),
        "https://ap.www.namecheap.com/domains/list/",
        ("advanced_dns", "one_piece"),
    ),
    "google_cloud": DnsProvider(
        "Google Cloud DNS",
        re.compile(r"ns-cloud-[a-z0-9]+\.googledomains\.com"),
        "https://console.cloud.google.com/net-services/dns/zones",
        ("empty_name", "split_quotes"),
    ),
    "squarespace": DnsProvider(
        "Squarespace",
        _below("squarespacedns.com"),
        "https://account.squarespace.com/domains",
        ("custom_records", "one_piece"),
    ),
    "ionos": DnsProvider(
        "IONOS", re.compile(r".*\.ui-dns\.(?:com|de|org|biz)"), "https://my.ionos.com/domains", ("decline", "one_piece")
    ),
    "hetzner": DnsProvider(
        "Hetzner",
        re.compile(r"(?:hydrogen|oxygen|helium)\.ns\.hetzner\.(?:com|de)"),
        "https://dns.hetzner.com/",
        ("quotes", "final_dot"),
    ),
    "azure": DnsProvider("Azure DNS", re.compile(r".*\.azure-dns\.(?:com|net|org|info)"), "https://portal.azure.com/"),
    "digitalocean": DnsProvider(
        "DigitalOcean", _below("digitalocean.com"), "https://cloud.digitalocean.com/networking/domains"
    ),
    "ovh": DnsProvider("OVHcloud", _below("ovh.net", "anycast.me"), "https://www.ovh.com/manager/"),
    "gandi": DnsProvider("Gandi", _below("gandi.net"), "https://admin.gandi.net/"),
    "dnsimple": DnsProvider("DNSimple", _below("dnsimple.com", "dnsimple-edge.net"), "https://dnsimple.com/dashboard"),
    "vercel": DnsProvider("Vercel", _below("vercel-dns.com"), "https://vercel.com/dashboard/domains"),
    "desec": DnsProvider("deSEC", _below("desec.io", "desec.org"), "https://desec.io/domains", ("quotes", "final_dot")),
    "inwx": DnsProvider("INWX", _below("inwx.de", "inwx.eu", "inwx.net"), "https://www.inwx.de/"),
    "strato": DnsProvider("STRATO", _below("rzone.de"), "https://www.strato.de/apps/CustomerService"),
}


def find_provider(servers: Collection[str]) -> str:
    """Return the key of the provider with one of these name servers; empty for an unknown one."""
    return next(
        (key for key, provider in PROVIDERS.items() if any(map(provider.servers.fullmatch, servers))),
        "",
    )
