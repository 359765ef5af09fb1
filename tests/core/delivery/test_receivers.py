"""Receivers: the organisation of a mail host, of a mailbox domain and of a reply, and the operator's file."""

import pytest

from core.delivery.receivers import Receiver
from core.delivery.receivers_file import InvalidReceiversFile, built_in_receivers, read_receivers
from tests.rows import each
from tests.stack.stack import REPOSITORY

TABLE = built_in_receivers()


@each(("host", "key"), [
    ("gmail-smtp-in.l.google.com", "google"), ("ASPMX.L.GOOGLE.COM.", "google"), ("smtp.google.com", "google"),
    ("acme-com.mail.protection.outlook.com", "microsoft-365"), ("acme-com.a-v1.mx.microsoft", "microsoft-365"),
    ("outlook-com.olc.protection.outlook.com", "outlook"), ("mta7.am0.yahoodns.net", "yahoo"),
    ("mx1.mail.yahoo.co.jp", "yahoo-japan"), ("mx01.mail.icloud.com", "apple"),
    ("eu-smtp-inbound-1.mimecast.com", "mimecast"), ("mxa-00abc.gslb.pphosted.com", "proofpoint"),
    ("d1.ess.barracudanetworks.com", "barracuda"), ("mx1.acme.iphmx.com", "cisco"), ("mx00.gmx.net", "gmx"),
    ("mx-ha03.web.de", "gmx"), ("mx01.ionos.de", "ionos"), ("mx00.t-online.de", "telekom"), ("mx1.mail.ovh.net", "ovh"),
    ("smtp-in.orange.fr", "orange"), ("mx2.free.fr", "free"), ("smtpz4.laposte.net", "la-poste"),
    ("smtp-in.libero.it", "libero"), ("mx1.seznam.cz", "seznam"), ("mx.wp.pl", "wp"), ("mx.poczta.onet.pl", "onet"),
    ("mxs.mail.ru", "mail-ru"), ("mx.yandex.ru", "yandex"), ("mx1.qq.com", "qq"),
    ("163mx01.mxmail.netease.com", "netease"), ("mx2.zoho.eu", "zoho"), ("in1-smtp.messagingengine.com", "fastmail"),
    ("mailsec.protonmail.ch", "proton"), ("mx1.comcast.net", "comcast"), ("al-ip4-mx-vip1.prodigy.net", "att"),
    ("mx.bt.lon5.cpcloud.co.uk", "bt"), ("mx-att.mail.am0.yahoodns.net", "yahoo"),
])  # fmt: skip
def test_the_name_of_a_mail_host_shows_its_receiver(host, key):
    assert TABLE.receiver_of_host(host).key == key


@each(("host", "key"), [
    ("mx1.acme.example", "acme.example"), ("MX.acme.co.uk.", "acme.co.uk"), ("localhost", "localhost"),
    # Names that only look alike, and hosts of customers.
    ("mx.notgoogle.com", "notgoogle.com"), ("google.com.evil.example", "evil.example"),
    ("c-192-0-2-1.hsd1.ma.comcast.net", "comcast.net"), ("vps1.ovh.net", "ovh.net"), ("outlook.com", "outlook.com"),
])  # fmt: skip
def test_an_unknown_receiver_is_the_registrable_domain_of_its_host(host, key):
    found = TABLE.receiver_of_host(host)
    assert (found.key, found.name) == (key, key)
    assert (found.connections, found.messages_per_connection, found.per_minute, found.tls) == (10, 100, None, None)


@each(("key", "connections", "messages"), [
    ("google", 5, 50), ("outlook", 5, 50), ("microsoft-365", 5, 50), ("yahoo", 10, 20), ("apple", 10, 5),
    ("orange", 2, 100), ("comcast", 25, 1000), ("mimecast", 10, 100), ("seznam", 10, 100),
])  # fmt: skip
def test_the_limits_are_those_of_the_receivers_page_or_of_kumomta(key, connections, messages):
    one = TABLE.receiver_of_key(key)
    assert (one.connections, one.messages_per_connection) == (connections, messages)


@each(("domain", "name"), [
    ("gmail.com", "Google"), ("googlemail.com", "Google"), ("outlook.com", "Outlook.com"),
    ("hotmail.co.uk", "Outlook.com"), ("live.com.au", "Outlook.com"), ("outlook.de", "Outlook.com"),
    ("yahoo.co.uk", "Yahoo"), ("yahoo.co.jp", "Yahoo! JAPAN"), ("aol.com", "Yahoo"), ("icloud.com", "Apple"),
    ("gmx.net", "GMX, WEB.DE"), ("web.de", "GMX, WEB.DE"), ("wanadoo.fr", "Orange"), ("att.net", "Yahoo"),
])  # fmt: skip
def test_a_domain_of_mailboxes_names_its_receiver(domain, name):
    assert TABLE.receiver_of_mailbox_domain(domain).name == name


@each(
    "domain",
    ["acme.example", "gmail.com.evil.example", "mygmail.com", "hotmail", "hotmail.evil.example", "gmail.fr", "", "."],
)
def test_any_other_domain_has_no_known_receiver(domain):
    assert TABLE.receiver_of_mailbox_domain(domain) is None


@each(("reply", "name"), [
    ("5.1.1 The email account that you tried to reach does not exist. d2e1a72fcca58 - gsmtp", "Google"),
    (
        "5.4.1 Recipient address rejected: Access denied. [AM5EUR02FT013.eop-EUR02.prod.protection.outlook.com]",
        "Microsoft 365",
    ),
    ("5.1.10 RESOLVER.ADR.RecipientNotFound [BN8NAM11.prod.outlook.com 2026-11-26]", "Microsoft 365"),
    ("Message not accepted for policy reasons. See https://senders.yahooinc.com/smtp-error-codes", "Yahoo"),
    ("5.1.1 User Unknown mx0a-00.pphosted.com", "Proofpoint"),
])  # fmt: skip
def test_a_reply_names_the_receiver_of_a_companys_domain(reply, name):
    assert TABLE.receiver_of_reply(reply).name == name


@each("reply", [
    "",
    "5.1.1 No such user",
    "5.7.1 <ada@outlook.com>: Sender address rejected",
    "5.1.1 <ada@orange.fr>: no such user at free.fr, laposte.net or libero.it",
    "blocked using barracudacentral.org, see http://www.barracudacentral.org/reputation",
])  # fmt: skip
def test_a_quoted_address_or_a_block_list_names_none(reply):
    assert TABLE.receiver_of_reply(reply) is None


def test_each_name_and_each_word_belongs_to_one_receiver():
    for field in ("mx", "domains", "replies"):
        words = [word for one in TABLE.receivers for word in getattr(one, field)]
        assert len(words) == len({*words})
        assert words == [word.lower() for word in words]
    assert len({one.name for one in TABLE.receivers}) == len(TABLE.receivers)


def test_numbers_have_a_page_or_a_reason():
    default = TABLE.default
    for one in TABLE.receivers:
        is_own = (one.connections, one.messages_per_connection) != (
            default.connections,
            default.messages_per_connection,
        )
        assert not is_own or one.source or one.reason, one.key


class TestFile:
    def read(self, tmp_path, text):
        path = tmp_path / "receivers.yaml"
        path.write_text(text)
        return read_receivers(path)

    def test_it_changes_limits_and_leaves_the_others(self, tmp_path):
        table = self.read(tmp_path, "google: {connections: 20, perMinute: 600, tls: required}")
        one = table.receiver_of_host("smtp.google.com")
        assert (one.connections, one.messages_per_connection, one.per_minute, one.tls) == (20, 50, 600, "required")
        assert table.receiver_of_key("yahoo") == TABLE.receiver_of_key("yahoo")
        assert table.receiver_of_host("mx.acme.example") == TABLE.receiver_of_host("mx.acme.example")

    def test_it_adds_hosts_domains_and_words_to_a_receiver(self, tmp_path):
        changes = "google: {mx: [.MX.acme.example], domains: [acme.example], replies: [acme.example/help]}"
        table = self.read(tmp_path, changes)
        assert table.receiver_of_host("a.mx.acme.example").key == "google"
        assert table.receiver_of_host("smtp.google.com").key == "google"
        assert table.receiver_of_mailbox_domain("acme.example").key == "google"
        assert table.receiver_of_reply("See https://acme.example/help").key == "google"

    def test_it_adds_receivers_by_name_or_by_the_domain_of_their_hosts(self, tmp_path):
        table = self.read(
            tmp_path, "acme: {name: Acme, mx: [mx.acme.example], connections: 3}\nother.example: {perMinute: 60}"
        )
        acme, other = table.receiver_of_host("a.mx.acme.example"), table.receiver_of_host("mx2.other.example")
        assert (acme.key, acme.name, acme.connections, acme.messages_per_connection) == ("acme", "Acme", 3, 100)
        assert (other.key, other.per_minute, other.connections) == ("other.example", 60, 10)

    def test_the_default_is_that_of_all_without_own_numbers(self, tmp_path):
        table = self.read(tmp_path, "default: {connections: 4, perMinute: 30}\nyahoo-japan: {perMinute: null}")
        limits = {key: (one := table.receiver_of_key(key)).connections and (one.connections, one.per_minute)
                  for key in ("acme.example", "seznam", "yahoo", "apple", "yahoo-japan")}  # fmt: skip
        assert limits == {
            "acme.example": (4, 30), "seznam": (4, 30), "yahoo": (4, 30), "apple": (10, 30), "yahoo-japan": (2, None),
        }  # fmt: skip

    def test_the_longest_name_of_a_host_decides(self, tmp_path):
        table = self.read(tmp_path, "acme: {mx: [acme.l.google.com]}")
        assert table.receiver_of_host("mx.acme.l.google.com").key == "acme"
        assert table.receiver_of_host("mx.l.google.com").key == "google"

    @each(
        ("text", "sentence"),
        [
            ("", "must have 1 to 1,000 receivers"),
            ("[google]", "must have 1 to 1,000 receivers"),
            ("{", "is neither YAML nor JSON"),
            ("google: 5", "google must have values, such as connections: 5."),
            ("google: {conections: 5}", "google: 'conections' is unknown. Use name, connections"),
            ("google: {connections: 0}", "google: connections must be a whole number from 1 to 1,000."),
            ("google: {connections: true}", "google: connections must be a whole number from 1 to 1,000."),
            ("google: {connections: 1001}", "google: connections must be a whole number from 1 to 1,000."),
            ("google: {connections: null}", "google: connections must be a whole number from 1 to 1,000."),
            ("google: {messagesPerConnection: 1.5}", "google: messagesPerConnection must be a whole number"),
            ("google: {perMinute: -1}", "google: perMinute must be a whole number from 1 to 1,000,000."),
            ("google: {tls: none}", "google: tls must be one of opportunistic, required."),
            ("google: {name: ''}", "google: name must be a text of 1 to 60 characters."),
            ("Google: {connections: 5}", "'Google' is not the key of a receiver"),
            ("7: {connections: 5}", "'7' is not the key of a receiver"),
            (
                "gogle: {connections: 5}",
                "gogle is not in the table, and has neither mx nor domains by which to find it.",
            ),
            ("default: {mx: [mx.acme.example]}", "default has the limits of all other receivers, and no names."),
            ("acme: {mx: mx.acme.example}", "acme: mx must be a list of texts"),
            ("acme: {mx: [acme]}", "acme: mx: 'acme' must be the name of a host"),
            ("acme: {mx: [co.uk]}", "acme: co.uk is a public suffix, below which others have their names."),
            ("co.uk: {connections: 5}", "co.uk: co.uk is a public suffix"),
            ("acme: {mx: [google.com]}", "acme: mx: google.com belongs to google."),
            ("acme: {domains: [gmail.com]}", "acme: domains: gmail.com belongs to google."),
            ("acme: {domains: [acme.example], replies: [NOT]}", "acme: replies: 'NOT' must have 4 to 100 characters"),
        ],
    )
    def test_a_mistake_is_an_error(self, tmp_path, text, sentence):
        with pytest.raises(InvalidReceiversFile) as raised:
            self.read(tmp_path, text)
        assert sentence in str(raised.value)

    def test_a_missing_or_a_large_file_is_an_error(self, tmp_path):
        with pytest.raises(InvalidReceiversFile, match="cannot be read: No such file"):
            read_receivers(tmp_path / "missing.yaml")
        with pytest.raises(InvalidReceiversFile, match="has more than 262,144 bytes"):
            self.read(tmp_path, "#" * 300_000)


def test_the_page_of_the_documentation_has_the_table():
    page = (REPOSITORY / "docs/receivers.md").read_text("utf-8")
    assert [row for row in map(page_row, (TABLE.default, *TABLE.receivers)) if row not in page] == []


def page_row(one: Receiver) -> str:
    numbers = f"{one.connections} | {one.messages_per_connection} | {one.per_minute or ''}".rstrip()
    mx = ", ".join(f"`{name}`" for name in one.mx[:3]) + (", …" if len(one.mx) > 3 else "")
    basis = "; ".join(filter(None, (one.source and f"<{one.source}>", one.reason)))
    name = "all others" if one.key == "default" else one.name
    return f"| `{one.key}` | {name} | {mx} | {numbers} | {basis} |".replace("  ", " ")


@each(("organization", "domain", "key"), [
    ("google.com", "google.com", "google"), ("Outlook.com", "microsoft.com", "outlook"),
    ("Enterprise Outlook", "microsoft.com", "microsoft-365"), ("Yahoo", "yahooinc.com", "yahoo"),
    ("Mail.Ru", "corp.mail.ru", "mail-ru"), ("GMX", "gmx.net", "gmx"), ("WEB.DE", "", "gmx"),
    ("seznam.cz a.s.", "seznam.cz", "seznam"), ("comcast.net", "alerts.comcast.net", "comcast"),
    ("FastMail Pty Ltd", "fastmaildmarc.com", "fastmail"), ("acme.example", "mail.acme.example", "acme.example"),
    ("mx.acme.co.uk.", "", "acme.co.uk"), ("", "reports.acme.example", "acme.example"),
    # Only a name for people, and nothing at all.
    ("Acme Mail", "", "acme mail"), ("Acme Mail", "mx1.google.com", "google"), ("", "", ""),
])  # fmt: skip
def test_a_report_names_its_receiver(organization, domain, key):
    assert TABLE.receiver_of_report(organization, domain=domain).key == key
