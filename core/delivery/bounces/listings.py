"""Listings of the sending address: which block list a refusal names (docs/decisions/0278).

A listed link or domain in the content is a refusal of the message, not a listing of the address. Phrases as in
`core.delivery.bounces.bounce_phrases`.
"""

from core.delivery.bounces.phrases import PhraseTable

# A list of the host or of its operator, which says nothing about other hosts.
OWN_LIST = "the receiver's own list"

# Marks that only listings of addresses have.
MARKED = PhraseTable(
    # Microsoft: sendersupport.olc.protection.outlook.com/pm/troubleshooting and Exchange Online's 5.7.606 to 5.7.649.
    # SC-001 is not here: it may be about the content.
    ("Microsoft", (
        " s3140 ", " s3150 ", "part of their network is on our block list", " oudc-001", " ou-001 ", " ou-002 ",
        " dy-001 ", " dy-002 ", " sc-002 ", " sc-003 ", " sc-004 ", "banned sending ip",
        "access denied banned sender", "traffic not accepted from this ip",
    )),
    # Yahoo and AOL: senders.yahooinc.com/smtp-error-codes; BL21 to BL23 are Spamhaus's.
    ("Spamhaus", (" bl21 ", " bl22 ", " bl23 ")),
    ("Yahoo", (" rly b1 ", " rly b2 ", " con b1 ", " rtr bb ", " rtr bg ")),
    # The 550 5.7.1 of support.google.com/a/answer/3726730.
    ("Google", (
        "mail sent from your ip address has been blocked", "not authorized to send email directly to our servers",
    )),
    # Proofpoint and Cloudmark, which has the same owner: replies of Rackspace, Libero and GoDaddy.
    ("Proofpoint", ("ipcheck.proofpoint", "csi.cloudmark.com/reset-request", "cloudmark sender intelligence")),
    ("Comcast", (" bl0000", "#bl0000")),  # postmaster.comcast.net/smtp-error-codes.php
    ("Cox", (" cxbl ",)),  # postmaster.cox.net
    ("AT&T", (" dnsbl rbl 521 ",)),  # "flph844 DNSBL:RBL 521< 192.0.2.1 >_is_blocked"
    ("T-Online", ("a problem occurred ask your postmaster",)),
    ("NetEase", (" hl ipb ", " dt rbl ")),
    ("Free", ("too many spams from your ip",)),  # postmaster.free.fr
    ("La Poste", ("lpn~_101", "lpn~_102")),
    ("GoDaddy", (" ib110 ", " ib111 ", " ib112 ", " ib113 ")),
)  # fmt: skip
# Spamhaus answers each query of a public resolver alike: the host that asks is configured wrongly, nothing is listed.
NO_ANSWER = PhraseTable((True, ("error open resolver", "returnc/pub", "excessive number of queries")))
# Lists that have addresses and, by other names, links and domains; and words of hosts with lists of their own.
NAMED = PhraseTable(
    ("Spamhaus", ("spamhaus", " zen.")),
    ("SpamCop", ("spamcop",)),
    ("Barracuda", ("barracuda",)),
    ("Abusix", ("abusix",)),
    ("SORBS", ("sorbs",)),
    ("UCEPROTECT", ("uceprotect", "backscatterer")),
    ("PSBL", ("psbl",)),
    ("Sender Score", ("senderscore", "sender score")),
    (OWN_LIST, (
        " rbl", "dnsbl", "blacklist", "black list", "blocklist", "block list", "block-list", "denylist", "is listed",
        "been listed", "on our list", "blocked using", "is blocked", "ip blocked", "been blocked", "address blocked",
        " not allowed ", "access from ip address",
    )),
)  # fmt: skip
# Words about the address that a host met.
ADDRESS = PhraseTable(
    (True, (
        " #ip# ", " ip ", "client host", "your host", "your server", "your network", "sending server",
        "your mail server", "sending mail server",
    )),
)  # fmt: skip
# Words about the content, the domain, or a list of one recipient.
OTHER_SUBJECTS = PhraseTable(
    (True, (
        "uribl", "surbl", " dbl", "dbl.", " hbl", " zrd", " url", " uri ", " link", " domain", "content", " body",
        "message contains", "email contains", "hash", "attachment", "helo", "by recipient",
        "by the recipient", "by this recipient", "by user",
    )),
)  # fmt: skip


def find_listing(text: str, *, is_greeting: bool = False) -> str:
    """Return the name of the list that has the sending address, or an empty text.

    text: normalized, of a refusal whose reason is BLOCKLISTED. The names come from the tables, so there are few.
    is_greeting: the host refuses before EHLO, and knows nothing but the address.
    """
    if name := MARKED.find(text):
        return name
    if NO_ANSWER.find(text):
        return OWN_LIST
    # Links are ignored: the pages of a list have one address for all its parts.
    words = f" {' '.join(word for word in text.split() if '/' not in word)} "
    if OTHER_SUBJECTS.find(words) or not (is_greeting or ADDRESS.find(words)):
        return ""
    return NAMED.find(text) or ""
