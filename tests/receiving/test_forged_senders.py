"""Senders within quotes, comments and encoded words: the verdict, the fields and other formats have the real one."""

import email
import email.policy
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from core.lib.mail.address_lists import read_address_list
from core.lib.network.public_suffixes import organizational_domain
from interfaces.compat.mailgun.webhook_format import form_fields as mailgun_fields
from interfaces.compat.postmark.receiving.format import inbound_payload
from interfaces.compat.resend.receiving.resources import received_resource
from interfaces.compat.sendgrid.receiving.format import form_fields as sendgrid_fields
from receiving.inlining import load_inlined
from receiving.reading.message import Reading, read_header
from receiving.reading.verdicts import ReceivedEnvelope, verify_origin
from tests.core.lib.mail.strict_addresses import read_strictly
from tests.core.lib.mail.test_address_lists import parts_of
from tests.receiving.builders import make_route, receive
from tests.receiving.hostile_senders import HOSTILE
from tests.receiving.zone import ZoneLookups
from tests.rows import each
from tests.standards.tools import node_modules, npm_modules, program

SCRIPT = Path(__file__).parent / "programs" / "addresses.cjs"
# The latest version that runs on Debian 12's Node.
POSTAL_MIME = "postal-mime@2.7.6"
DOMAINS = ("evil.example", "bank.example")
ZONE = {
    **{name: {"TXT": ["v=spf1 +all"]} for name in DOMAINS},
    **{f"_dmarc.{name}": {"TXT": ["v=DMARC1; p=reject"]} for name in DOMAINS},
}
# By the values of From: address, name.
CASES = {
    "mallory@evil.example (CEO <ceo@victim.example>)": ("mallory@evil.example", "CEO <ceo@victim.example>"),
    "(<ceo@victim.example>) Mallory <mallory@evil.example>": ("mallory@evil.example", "Mallory"),
    '"<b>Ada</b>" <real@example.com>': ("real@example.com", "<b>Ada</b>"),
    "cron@example.com (Cron Daemon)": ("cron@example.com", "Cron Daemon"),
    '"CEO <ceo@victim.example>" <mallory@evil.example>': ("mallory@evil.example", "CEO <ceo@victim.example>"),
    r'"CEO \"<ceo@victim.example>\"" <mallory@evil.example>': ("mallory@evil.example", 'CEO "<ceo@victim.example>"'),
    '"Doe, John <john@old.example>" <john@new.example>': ("john@new.example", "Doe, John <john@old.example>"),
    "=?utf-8?Q?=3Cx=40evil=2Eexample=3E?= <ada@bank.example>": ("ada@bank.example", "<x@evil.example>"),
    "CEO <ceo@victim.example> <mallory@evil.example>": ("mallory@evil.example", "CEO <ceo@victim.example>"),
}
# The text of such a word is read as a whole, but never trusted.
ENCODED_SPECIAL = re.compile(r"=\?[^?]*\?[^?]*\?[^?]*[(),;:][^?]*\?=")


def read(*fields: str) -> Reading:
    return read_header("".join(f"{field}\r\n" for field in fields).encode() + b"\r\nHi\r\n", envelope_from="")


def verdicts(reading: Reading, domain: str) -> dict[str, Any]:
    """Return the verdicts about a message whose SPF passes for a domain."""
    envelope = ReceivedEnvelope(f"x@{domain}", "mx.example", "192.0.2.1")
    return verify_origin(b"", envelope=envelope, senders=reading.senders, lookups=ZoneLookups(ZONE))


@each("text", HOSTILE)
def test_a_hostile_from_passes_only_for_the_sender_of_a_strict_reader(text):
    reading, strict = read(f"From: {text}"), read_strictly(text)
    for domain in DOMAINS:
        dmarc = verdicts(reading, domain)["dmarc"]
        if len(strict) != 1 or ENCODED_SPECIAL.search(text):
            assert (dmarc["result"], dmarc["domain"]) == ("permerror", "")
        if len(strict) == 1:
            assert parts_of(reading.mailboxes["from"][0].email) == strict[0]
            assert dmarc["domain"] in {strict[0][1], ""}
            assert (dmarc["result"] == "pass") == (organizational_domain(dmarc["domain"]) == domain)


@each("text", HOSTILE)
def test_the_addresses_of_other_fields_are_those_of_a_strict_reader(text):
    reading, strict = read(f"Reply-To: {text}", f"To: {text}", f"Cc: {text}", f"Sender: {text}"), read_strictly(text)
    shown = {name: [mailbox.email for mailbox in found] for name, found in reading.mailboxes.items() if found}
    assert shown in ({}, dict.fromkeys(("replyTo", "to", "cc"), shown.get("to")))
    if strict:
        assert [parts_of(address) for address in shown["to"]] == strict
    # The decoded fields, among them Sender, have the same addresses again; PostgreSQL stores no NUL.
    for _, value in reading.headers if "\x00" not in text else ():
        assert [mailbox.email for mailbox in read_address_list(value).mailboxes] == shown.get("to", [])


@each("fields", [
    ("From: x@evil.example", "From: ada@bank.example"), ("From: x@evil.example", "from : x@evil.example"),
    ("From:", "From: x@evil.example"), ("From: Bank:;", "From: x@evil.example"),
    ("From: x@evil.example, ada@bank.example", "Sender: x@evil.example"),
])  # fmt: skip
def test_two_senders_or_two_fields_never_pass(fields):
    reading = read(*fields)
    found = verdicts(reading, "evil.example")
    assert (found["result"], found["dmarc"]) == ("permerror", {"result": "permerror", "policy": None, "domain": ""})
    assert reading.sender == "x@evil.example"


def test_an_ambiguous_sender_is_explained():
    assert read("From: Ada", "To: <a@b.example> c").errors == ["The sender in From is ambiguous"]
    assert read("From: a@b.example", "From: a@b.example").errors == ["The sender in From is ambiguous"]
    assert read("To: Ada", "From: a@b.example").errors == ["An address in To was left out"]
    assert read("From: a@b.example, c@d.example").errors == []


@pytest.mark.django_db
def test_every_format_has_the_real_sender(alice, receiving):
    make_route(alice.workspace)
    for text, (address, name) in CASES.items():
        fields = f"From: {text}\r\nTo: {text}\r\nCc: {text}\r\nReply-To: {text}\r\n"
        received = receive(f"{fields}Subject: Hi\r\n\r\nHi".encode())
        assert received.sender == address
        mailbox = {"email": address, "name": name}
        assert received.message.addresses == {field: [mailbox] for field in ("from", "to", "cc", "replyTo")}
        inlined = load_inlined({"id": received.id})
        postmark, sendgrid, mailgun = inbound_payload(inlined), sendgrid_fields(inlined), mailgun_fields(inlined)
        resend = received_resource(received, has_images=False)
        shown = [
            *(postmark[name] for name in ("From", "To", "Cc", "ReplyTo")),
            *(postmark[name]["Email"] for name in ("FromFull",)),
            *(sendgrid[name] for name in ("from", "to", "cc")),
            *(mailgun[name] for name in ("from", "From", "To", "Cc")),
            *(resend["headers"][name] for name in ("from", "to", "cc", "reply-to")),
            *(resend["from"], resend["to"][0], resend["cc"][0], resend["reply_to"][0]),
            *(value for name, value in json.loads(mailgun["message-headers"]) if name != "Subject"),
        ]
        for value in shown:
            found = read_address_list(value)
            assert ([one.email for one in found.mailboxes], found.is_exact) == ([address], True)


# Fields that follow the grammar, and other programs do not read so.
GRAMMAR = {
    "mailparser and postal-mime leave out the quotes of a local part that needs them": (
        '"x@evil.example"@bank.example',
        '"x@evil.example>"@bank.example',
    ),
    "they keep white space around an at sign, or end the address there": (
        "ada (x@evil.example) @bank.example",
        "ada@bank.example .evil.example",
    ),
    "they do not know quoted pairs in comments, nor comments in brackets": (
        r"Ada (\) <x@evil.example>) <ada@bank.example>",
        "<ada(<x@evil.example>)@bank.example>",
    ),
    "they read an address in a comment if there is no other one": ("(ada@bank.example)",),
    "they do not know routes": ("<@evil.example:ada@bank.example>", "<@evil.example,@bank.example:ada@bank.example>"),
    "Python decodes an encoded word in an address, where RFC 2047, section 5, allows none": (
        "=?utf-8?Q?x?=@bank.example",
    ),
}
# Fields outside of the grammar that no other program reads so.
BEYOND = {
    "of several addresses, the last one; others show the first one, or what is in the first brackets": (
        '"(" <x@evil.example> ")" <ada@bank.example>',
        'Ada (" ) <x@evil.example> (") <ada@bank.example>',
        "x@evil.example ada@bank.example",
        "ada@bank.example x@evil.example",
        "<x@evil.example> <ada@bank.example>",
        "Ada <x@evil.example> Bank <ada@bank.example>",
        "<<Bank>> <x@evil.example>",
        "<b>Bank</b> <x@evil.example>",
        r"Ada \<x@evil.example\> <ada@bank.example>",
    ),
    "no address within quotes, others return the text": (
        '"a <x@evil.example> <ada@bank.example>',
        '"ada@bank.example\x00"@evil.example',
    ),
    "others end an address at an invisible character, or keep it; a space shows that there was one": (
        "ada@bank.example\u200b.evil.example",
        "ada@bank.example\xa0.evil.example",
    ),
    "others keep what is not part of an address": (
        "ada@bank.example.",
        "ada@.bank.example",
        "<evil.example:ada@bank.example>",
        "<x@evil.example:ada@bank.example>",
        "<mailto:ada@bank.example>",
    ),
    "of an address with two at signs none; others keep what is before the first, or all": ("ada@[x@evil.example]",),
    "others show either the name of a group or its member": (
        "x@evil.example: ada@bank.example;",
        "<x@evil.example>: ada@bank.example;",
    ),
}


def read_by_python(text: str) -> list[str] | None:
    """Return the addresses that Python's email reads; None for a field on which it fails."""
    try:
        return [
            one.addr_spec
            for one in email.message_from_string(f"Cc: {text}\n\n", policy=email.policy.default)["Cc"].addresses
        ]
    except (AttributeError, IndexError):
        return None


@pytest.mark.full
def test_other_programs_read_the_same_addresses_except_for_those_explained():
    environment = {**os.environ, "NODE_PATH": f"{node_modules()}:{npm_modules(POSTAL_MIME)}"}
    node = program("node", package="nodejs")
    done = subprocess.run(
        [node, str(SCRIPT)],
        env=environment,
        input=json.dumps(HOSTILE),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    theirs = [*json.loads(done.stdout).values(), [read_by_python(text) for text in HOSTILE]]
    different: dict[bool, set[str]] = {True: set(), False: set()}
    for text, *found in zip(HOSTILE, *theirs, strict=True):
        ours = read_address_list(text)
        addresses = [mailbox.email for mailbox in ours.mailboxes]
        same = [[one for one in read or () if "@" in one] == addresses for read in found]
        if not (all(same) if ours.is_exact else any(same)):
            different[ours.is_exact].add(text)
    assert different[True] == {text for texts in GRAMMAR.values() for text in texts}
    assert different[False] == {text for texts in BEYOND.values() for text in texts}
