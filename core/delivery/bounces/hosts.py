"""Receiving hosts: the mail provider of a recipient, from the domain and from the words of a reply.

Only names for people: nothing is decided by them. See docs/decisions/0249.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MailProvider:
    """A provider of mailboxes or of filters in front of them.

    domains: the domains of its mailboxes; a name without a dot stands for its domains in all countries, such as
    hotmail.fr.
    marks: words of its replies in lower case, which name the provider of a company's own domain. They contain no
    address that a reply could quote.
    """

    name: str
    domains: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


GOOGLE = MailProvider("Google", ("gmail.com", "googlemail.com"), ("gsmtp", "support.google.com/"))
MICROSOFT = MailProvider(
    "Microsoft",
    ("outlook", "hotmail", "live", "msn.com", "windowslive.com", "passport.com"),
    (".outlook.com", "mail.support.microsoft.com", "aka.ms/"),
)
YAHOO = MailProvider(
    "Yahoo", ("yahoo", "ymail.com", "rocketmail.com", "aol.com", "aim.com"), ("help.yahoo.com", "senders.yahooinc.com")
)
PROVIDERS = (
    GOOGLE,
    MICROSOFT,
    YAHOO,
    MailProvider("Apple", ("icloud.com", "me.com", "mac.com"), ("support.apple.com/",)),
    MailProvider("GMX, WEB.DE", ("gmx", "web.de"), ("postmaster.gmx.net", "postmaster.web.de")),
    MailProvider("T-Online", ("t-online.de", "magenta.de"), ("postmaster.t-online.de",)),
    MailProvider("Proton", ("proton.me", "protonmail.com", "pm.me"), (".protonmail.ch",)),
    MailProvider("Yandex", ("yandex", "ya.ru"), ("yandex.ru/support", ".yandex.net")),
    MailProvider("Mail.ru", ("mail.ru", "inbox.ru", "list.ru", "bk.ru"), ("help.mail.ru",)),
    MailProvider("Tencent", ("qq.com", "foxmail.com"), ("service.mail.qq.com",)),
    MailProvider("NetEase", ("163.com", "126.com", "yeah.net"), ("mail.163.com/help", "mail.163.com/mailhelp")),
    MailProvider("Zoho", ("zoho.com", "zohomail.com"), ("zoho.com/mail",)),
    # Filters, which answer for the domains of companies.
    MailProvider("Proofpoint", marks=(".pphosted.com", "proofpoint.com/")),
    MailProvider("Mimecast", marks=("mimecast.com",)),
    MailProvider("Barracuda", marks=(".barracudanetworks.com",)),
)
BY_DOMAIN: Mapping[str, MailProvider] = {domain: one for one in PROVIDERS for domain in one.domains}
# hotmail.fr, yahoo.co.uk
COUNTRY = re.compile(r"([a-z-]+)\.(?:com|[a-z]{2}|(?:co|com)\.[a-z]{2}|net)")


def provider_of_domain(domain: str) -> MailProvider | None:
    """Return the provider whose mailboxes have a domain, or None. domain: in lower case."""
    if "." in domain and (found := BY_DOMAIN.get(domain)):
        return found
    match = COUNTRY.fullmatch(domain)
    return BY_DOMAIN.get(match[1]) if match else None


def provider_of_reply(text: str) -> MailProvider | None:
    """Return the provider that a reply names, or None."""
    lower = text.lower()
    return next((one for one in PROVIDERS if any(mark in lower for mark in one.marks)), None)
