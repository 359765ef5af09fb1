"""Receiving hosts: the provider of a recipient, from the domain and from a reply."""

from core.delivery.bounces.hosts import PROVIDERS, provider_of_domain, provider_of_reply
from tests.rows import each


@each(("domain", "name"), [
    ("gmail.com", "Google"), ("googlemail.com", "Google"), ("outlook.com", "Microsoft"), ("hotmail.co.uk", "Microsoft"),
    ("live.com.au", "Microsoft"), ("outlook.de", "Microsoft"), ("yahoo.co.jp", "Yahoo"), ("aol.com", "Yahoo"),
    ("icloud.com", "Apple"), ("gmx.net", "GMX, WEB.DE"), ("web.de", "GMX, WEB.DE"),
])  # fmt: skip
def test_a_domain_of_mailboxes_names_its_provider(domain, name):
    assert provider_of_domain(domain).name == name


@each(
    "domain",
    ["acme.example", "gmail.com.evil.example", "mygmail.com", "hotmail", "hotmail.evil.example", "gmail.fr", "", "."],
)
def test_any_other_domain_has_no_known_provider(domain):
    assert provider_of_domain(domain) is None


@each(("reply", "name"), [
    ("5.1.1 The email account that you tried to reach does not exist. d2e1a72fcca58 - gsmtp", "Google"),
    (
        "5.4.1 Recipient address rejected: Access denied. [AM5EUR02FT013.eop-EUR02.prod.protection.outlook.com]",
        "Microsoft",
    ),
    ("5.1.10 RESOLVER.ADR.RecipientNotFound [BN8NAM11.prod.outlook.com 2026-11-26]", "Microsoft"),
    ("Message not accepted for policy reasons. See https://senders.yahooinc.com/smtp-error-codes", "Yahoo"),
    ("5.1.1 User Unknown mx0a-00.pphosted.com", "Proofpoint"),
])  # fmt: skip
def test_a_reply_names_the_provider_of_a_companys_domain(reply, name):
    assert provider_of_reply(reply).name == name


@each("reply", [
    "",
    "5.1.1 No such user",
    "5.7.1 <ada@outlook.com>: Sender address rejected",
    "blocked using barracudacentral.org, see http://www.barracudacentral.org/reputation",
])  # fmt: skip
def test_a_quoted_address_or_a_block_list_names_none(reply):
    assert provider_of_reply(reply) is None


def test_each_domain_and_each_mark_belongs_to_one_provider():
    for words in ([domain for one in PROVIDERS for domain in one.domains], [m for one in PROVIDERS for m in one.marks]):
        assert len(words) == len({*words})
        assert words == [word.lower() for word in words]
