"""The SMTP server: every reply of its table, over real sessions, and a committed row for each 250."""

import smtplib
import threading
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from core.lib.ids import to_uuid
from core.lib.mail.smtp_limits import SessionLimits
from core.workspaces.models import Workspace
from emails.models import Email, Recipient
from emails.sending.reply_address import reply_address
from interfaces.inbound import routed, server
from receiving.arrival import storing
from receiving.models import InboundRoute, Message, ReceivedContent, ReceivedEmail, ReceivingUsage, SenderBlock
from tests.conftest import Api, make_account, make_domain, make_key
from tests.core.lib.nameserver import NameServer
from tests.emails.builders import send
from tests.interfaces.inbound.dsns import dsn
from tests.interfaces.inbound.fixtures import return_path_of, run_inbound, sent_recipient
from tests.receiving.builders import PLAIN, make_route, process_received, receive_for, with_field
from tests.receiving.signing import TAGS, message, record, sign
from tests.rows import each

pytestmark = pytest.mark.django_db(transaction=True)

TO = "support@alice.example"


@pytest.fixture
def port(alice, receiving):
    with run_inbound() as port:
        yield port


def deliver(
    port, source: bytes = PLAIN, *to: str, sender: str = "ada@example.com", size: int | None = None
) -> list[str]:
    """Deliver a message; return the replies to MAIL, each RCPT, and the message if a recipient was accepted."""
    with smtplib.SMTP("127.0.0.1", port.number, timeout=30) as client:
        client.ehlo("mx.example.com")
        replies = [client.mail(sender, [f"SIZE={size}"] if size else [])]
        if replies[0][0] == 250:
            replies += [client.rcpt(address) for address in to or (TO,)]
        if any(code == 250 for code, _ in replies[1:]):
            try:
                replies.append(client.data(source))
            except smtplib.SMTPDataError as error:
                replies.append((error.smtp_code, error.smtp_error))
        return [f"{code} {text.decode()}" for code, text in replies]


def test_a_routed_message_is_stored_before_its_250(port, route):
    mail, rcpt, data = deliver(port)
    email = ReceivedEmail.objects.select_related("message").get()
    assert (mail, rcpt, data) == ("250 2.1.0 OK", "250 2.1.5 OK", f"250 2.6.0 <{email.id}> Stored")
    assert (email.recipient, email.route_id, email.status) == (TO, route.id, "stored")
    message = email.message
    wanted = "ada@example.com", "mx.example.com", "127.0.0.1"
    assert (message.envelope_from, message.helo, message.remote_ip) == wanted
    assert bytes(ReceivedContent.objects.get().data) == PLAIN
    assert message.trace.startswith("Received: from mx.example.com ([127.0.0.1])\r\n\tby mx.demo.example (Postrider)")


@each("to", ["support@bob.example", "x@in.demo.example", "nobody@nowhere.example", "support@"])
def test_an_unknown_address_is_550(port, route, to):
    assert deliver(port, PLAIN, to)[1].startswith(("550 5.1.1", "553 5.1.3"))


def test_without_a_route_and_with_an_inactive_one_it_is_550(port, alice):
    assert deliver(port)[1].startswith("550 5.1.1")
    route = make_route(alice.workspace, active=False)
    assert deliver(port)[1].startswith("550 5.1.1")
    InboundRoute.objects.filter(id=route.id).update(active=True, action="reject")
    assert deliver(port)[1] == "550 5.1.1 The recipient does not accept email"
    InboundRoute.objects.filter(id=route.id).update(action="discard")
    assert deliver(port)[2].startswith("250 2.6.0 <inb_")
    assert not Message.objects.exists()


def test_receiving_ends_with_its_domain(port, route, receiving):
    assert deliver(port)[1].startswith("250")
    receiving.domain.delete()
    assert deliver(port)[1].startswith("550 5.1.1")


def test_twenty_refusals_end_the_session(port, route):
    with smtplib.SMTP("127.0.0.1", port.number, timeout=10) as client:
        client.ehlo()
        client.mail("ada@example.com")
        assert [client.rcpt("nobody@bob.example")[0] for _ in range(20)] == [550] * 20
        client.rcpt("nobody@bob.example")
        with pytest.raises(smtplib.SMTPServerDisconnected):
            client.rcpt("nobody@bob.example")


def test_a_transaction_has_at_most_fifty_recipients(port, route):
    replies = deliver(port, PLAIN, *(f"r{number}@alice.example" for number in range(51)))
    assert [reply[:3] for reply in replies] == ["250"] * 51 + ["452", "250"]
    assert replies[51] == "452 4.5.3 Too many recipients"
    assert ReceivedEmail.objects.count() == 50
    assert (Message.objects.count(), ReceivedContent.objects.count()) == (1, 1)


def test_a_transaction_has_one_kind_of_recipient(port, route, alice):
    recipient = sent_recipient(alice.workspace)
    report = return_path_of(recipient)
    assert deliver(port, PLAIN, TO, report)[2] == "452 4.5.3 Send this recipient a separate message"
    assert deliver(port, dsn(), report, TO)[2].startswith("452 4.5.3")


def test_reports_keep_their_limit(port, route, alice):
    report = return_path_of(sent_recipient(alice.workspace))
    assert deliver(port, dsn(), report, size=1024 * 1024 + 1)[1].startswith("552 5.3.4")
    large = dsn() + b"x" * 70 + b"\r\n" + (b"x" * 70 + b"\r\n") * 15_000
    assert deliver(port, large, report)[2].startswith("552 5.3.4")
    assert deliver(port, dsn(), report)[2].startswith("250 2.6.0")


@pytest.mark.parametrize("blocked", ["eve@spam.example", "spam.example"])
def test_a_blocked_sender_is_550_at_rcpt(port, route, alice, blocked):
    SenderBlock.objects.create(workspace=alice.workspace, sender=blocked)
    assert deliver(port, sender="Eve@SPAM.example")[1] == "550 5.7.1 Sender not allowed"
    assert deliver(port, sender="eve@other.example")[1].startswith("250")


@each(("answer", "code"), [("127.0.0.2", "550 5.7.1"), ("192.0.2.1", "250"), (None, "250")])
def test_a_listed_host_is_550(port, route, settings, answer, code):
    with NameServer({"1.0.0.127.list.example": {"A": [answer]}} if answer else {}) as server:
        settings.DNS_SERVERS, settings.RECEIVING_DNSBL = [server.address], ["list.example"]
        assert deliver(port)[1].startswith(code)


@pytest.mark.parametrize(
    ("domain", "status"), [(b"victim.example", "processed"), (b"victim.example!.evil.example", "blocked")]
)
def test_only_a_signature_of_the_domain_in_from_authenticates_a_sender(port, alice, settings, domain, status):
    """The key of each signature is in the zone of its domain: that of the second one belongs to the attacker."""
    make_route(alice.workspace, require_authenticated=True)
    key = record()
    zone = {
        f"s1._domainkey.{domain.decode()}": {"TXT": [f'"{key[:200]}" "{key[200:]}"']},
        "_dmarc.victim.example": {"TXT": ['"v=DMARC1; p=reject"']},
    }
    with NameServer(zone) as server:
        settings.DNS_SERVERS = [server.address]
        deliver(port, sign(message(), TAGS.replace(b"evil.example", domain)), sender="a@evil.example")
        process_received()
    email = ReceivedEmail.objects.select_related("message").get()
    (verdict,) = email.message.authentication["dkim"]
    assert (email.status, verdict["domain"]) == (status, "victim.example" if status == "processed" else "")
    asked = {name for name, kind, _ in server.questions if "_domainkey" in name}
    assert asked == ({"s1._domainkey.victim.example"} if status == "processed" else set())


def test_a_message_that_is_too_large_is_552(port, route, settings):
    assert deliver(port, size=settings.RECEIVING_MAX_BYTES + 1)[0].startswith("552 5.3.4")
    settings.RECEIVING_MAX_BYTES = 5_000
    assert deliver(port, with_field(f"X-Long: {'x ' * 3_000}"))[2].startswith("552 5.3.4")
    assert deliver(port)[2].startswith("250")


def test_the_size_of_a_message_does_not_include_transparency_dots(port, route, settings):
    source = PLAIN + b".\r\n..\r\n" * 1_000
    settings.RECEIVING_MAX_BYTES = len(source)
    assert deliver(port, source)[2].startswith("250 2.6.0")
    assert bytes(ReceivedContent.objects.get().data) == source
    assert deliver(port, b"X" + source)[2].startswith("552 5.3.4")


def test_memory_is_shared_by_all_sessions(alice, receiving, route, settings):
    settings.RECEIVING_MEMORY_BYTES = 8 * 1024 * 1024
    with run_inbound() as port:
        large = 3 * 1024 * 1024
        assert deliver(port, size=large)[2] == "452 4.3.1 Not enough memory, try again later"
        assert deliver(port, PLAIN + (b"x" * 76 + b"\r\n") * 40_000)[2].startswith("452 4.3.1")
        # The session and the memory are free again.
        assert deliver(port)[2].startswith("250")


def test_a_network_has_a_limit_of_messages_except_for_private_ones(port, route, monkeypatch):
    monkeypatch.setattr(routed, "NETWORK_MESSAGES", 1)
    for number in range(3):
        assert deliver(port, with_field(f"X-Private: {number}"))[2].startswith("250")
    for peer in ("9.9.9.9", "2606:4700::1"):
        monkeypatch.setattr(server, "_peer", lambda _, peer=peer: peer)
        assert deliver(port, with_field(f"X-Peer: {peer}"))[2].startswith("250")
        assert deliver(port, with_field("X-Other: 1"))[1] == "452 4.7.1 Too many messages from your network"


def test_a_workspace_has_a_limit_of_messages_a_day(port, route, settings):
    settings.RECEIVING_DAILY_LIMIT = 1
    assert deliver(port)[2].startswith("250")
    assert deliver(port, with_field("X-Other: 1"))[1].startswith("452 4.7.1")
    ReceivingUsage.objects.update(day=timezone.now().date() - timedelta(days=1))
    assert deliver(port, with_field("X-Other: 1"))[2].startswith("250")
    assert ReceivingUsage.objects.get().messages == 1


def test_full_storage_is_452(port, route, settings):
    settings.RECEIVING_STORAGE = 20 * len(PLAIN)
    assert deliver(port)[2].startswith("250")
    # The next message does not fit; then the storage is full.
    ReceivingUsage.objects.update(stored_bytes=settings.RECEIVING_STORAGE - len(PLAIN))
    assert deliver(port, with_field("X-Other: 1"))[2].startswith("452 4.2.2")
    ReceivingUsage.objects.update(stored_bytes=settings.RECEIVING_STORAGE)
    assert deliver(port)[1].startswith("452 4.2.2")
    assert ReceivedEmail.objects.count() == 1


def test_a_message_has_at_most_a_tenth_of_the_storage(port, route, settings):
    settings.RECEIVING_STORAGE = 10 * len(PLAIN)
    assert deliver(port, size=len(PLAIN))[2].startswith("250")
    assert deliver(port, size=len(PLAIN) + 1)[1] == "552 5.2.3 Message too large for the recipient"
    assert deliver(port, PLAIN + b"x")[2].startswith("552 5.3.4")
    InboundRoute.objects.update(action="discard")
    assert deliver(port, PLAIN + b"x")[2].startswith("250")
    assert ReceivedEmail.objects.count() == 1


@each(("fields", "reply"), [(30, "250 2.6.0"), (31, "554 5.4.6 Mail loop")])
def test_a_mail_loop_is_554(port, route, fields, reply):
    assert deliver(port, b"Received: from a by b\r\n" * fields + PLAIN)[2].startswith(reply)


def test_our_own_trace_twice_is_a_loop(port, route):
    trace = b"Received: from a\r\n\tby mx.demo.example (Postrider) with ESMTP id 1;\r\n\tFri, 20 Nov 2026\r\n"
    assert deliver(port, trace + PLAIN)[2].startswith("250")
    assert deliver(port, trace * 2 + PLAIN)[2].startswith("554 5.4.6")
    assert deliver(port, PLAIN + b"\r\n" + trace * 2)[2].startswith("250")


@each(("ago", "reply"), [(timedelta(days=6), "450 4.2.1"), (timedelta(days=8), "550 5.1.1")])
def test_a_suspended_or_deleted_workspace_receives_later_or_never(port, route, alice, settings, ago, reply):
    settings.WORKSPACE_DELETION_DAYS = 30
    since = timezone.now() - ago
    for fields in ({"suspended_at": since}, {"suspended_at": None, "deletes_at": since + timedelta(days=30)}):
        Workspace.objects.filter(id=alice.workspace.id).update(**fields)
        assert deliver(port)[1].startswith(reply)


def test_without_the_database_it_is_451(port, route, monkeypatch):
    def fail(*_, **__):
        raise OperationalError("the connection is closed")

    monkeypatch.setattr(server, "decide_recipients", fail)
    assert deliver(port)[1] == "451 4.3.0 Temporary storage failure"
    monkeypatch.undo()
    monkeypatch.setattr(storing.content, "put", fail)
    assert deliver(port)[2] == "451 4.3.0 Temporary storage failure"
    assert not ReceivedEmail.objects.exists()


def test_a_workspace_has_a_share_of_the_sessions(alice, receiving, route):
    make_domain(alice.workspace, "b.example")
    with (
        run_inbound(SessionLimits(sessions_per_owner=1, message_bytes=10**7)) as port,
        port.open_session() as first,
    ):
        first.exchange(b"MAIL FROM:<a@b.example>\r\n")
        assert first.exchange(f"RCPT TO:<{TO}>\r\n".encode()).startswith("250")
        assert deliver(port)[1] == "452 4.3.2 Too many sessions for this recipient"


def test_a_repeated_delivery_is_250_and_makes_no_second_row(port, route):
    first, again = deliver(port)[2], deliver(port)[2]
    assert first == again
    assert deliver(port, PLAIN, TO, "other@alice.example")[3] == first
    assert {email.recipient for email in ReceivedEmail.objects.all()} == {TO, "other@alice.example"}
    assert deliver(port, sender="other@example.com")[2] != first
    assert deliver(port, with_field("X-Other: 1"))[2] != first
    Message.objects.update(received_at=timezone.now() - timedelta(hours=25))
    assert deliver(port)[2] != first


def test_a_client_that_leaves_after_its_message_loses_nothing_of_it(port, route, monkeypatch):
    """Its repetition finds the first delivery, which must be complete."""
    has_left, is_over = threading.Event(), threading.Event()

    def wait_for_end(point: str) -> None:
        assert point != "receiving.before_store" or has_left.wait(20)
        if point == "receiving.after_commit":
            is_over.set()

    monkeypatch.setattr(storing, "failpoint", wait_for_end)
    monkeypatch.setattr(routed, "failpoint", wait_for_end)
    with port.open_session() as session:
        for command in ("MAIL FROM:<ada@example.com>", f"RCPT TO:<{TO}>", "DATA"):
            assert session.exchange(command.encode() + b"\r\n")[:1] in {"2", "3"}
        session.connection.sendall(PLAIN + b".\r\n")
    # The server reads the end of that connection before the commands of another one.
    with port.open_session() as other:
        assert other.exchange(b"NOOP\r\n").startswith("250")
    has_left.set()
    assert is_over.wait(20)
    email_id = ReceivedEmail.objects.get().id
    assert deliver(port)[2] == f"250 2.6.0 <{email_id}> Stored"
    assert bytes(ReceivedContent.objects.get().data) == PLAIN
    assert ReceivedEmail.objects.get().message.tls == ""


def test_simultaneous_deliveries_of_one_message_make_one_row(port, route):
    threads = [threading.Thread(target=deliver, args=(port,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ReceivedEmail.objects.count() == 1


def test_a_crash_between_commit_and_250_makes_one_row(port, route, monkeypatch):
    """The sender gets no 250 and delivers again."""

    def crash(name: str) -> None:
        if name == "receiving.after_commit":
            raise OSError("the process ends")

    monkeypatch.setattr(routed, "failpoint", crash)
    assert deliver(port)[2].startswith("451")
    assert ReceivedEmail.objects.count() == 1
    monkeypatch.undo()
    assert deliver(port)[2] == f"250 2.6.0 <{ReceivedEmail.objects.get().id}> Stored"
    assert ReceivedEmail.objects.count() == 1


def test_recipients_of_two_workspaces_share_content_and_nothing_else(port, route, alice):
    bob = make_account("bob")
    receive_for(make_domain(bob.workspace, "bob.example"))
    make_route(bob.workspace, domain="bob.example")
    assert deliver(port, PLAIN, TO, "hidden@bob.example")[3].startswith("250")
    assert (ReceivedContent.objects.count(), ReceivedEmail.objects.count()) == (1, 2)
    for account, other in ((alice, "bob.example"), (bob, "hidden@bob.example")):
        api = Api(make_key(account.workspace))
        (item,) = api.get("/inbound/emails").json()["data"]
        shown = api.get(f"/inbound/emails/{item['id']}").content.decode()
        raw = b"".join(api.get(f"/inbound/emails/{item['id']}/raw").streaming_content).decode()
        if account is alice:
            assert other not in shown + raw
        else:
            assert item["recipient"] == other


def test_the_shared_address_receives_without_a_domain(port, alice):
    address = Api(make_key(alice.workspace)).get("/inbound").json()["address"]
    labelled = address.replace("@", "+Orders@").upper()
    assert deliver(port, PLAIN, labelled)[2].startswith("250")
    email = ReceivedEmail.objects.get()
    assert (email.tag, email.route_id) == ("ORDERS", None)


def test_a_reply_address_needs_no_route(port, alice):
    api = Api(make_key(alice.workspace))
    send(api, replyTracking=True)
    address = reply_address(to_uuid(Recipient.objects.get().id), domain="alice.example")
    assert deliver(port, PLAIN, address.upper())[2].startswith("250")
    assert deliver(port, PLAIN, address.replace("alice", "bob"))[1].startswith("550")
    assert deliver(port, PLAIN, f"r-{'a' * 53}@alice.example")[1].startswith("550")


@each("source", [
    b"", b"\r\n", b"no header\r\n", b"\xff\xfe\x00\x01", b"Subject: \xe2\x82\xac\r\n\r\n" + b"x" * 100_000,
    b".\r\n..\r\n",
])  # fmt: skip
def test_no_content_is_refused(port, route, source):
    assert deliver(port, source)[2].startswith("250 2.6.0")


def test_a_null_sender_and_an_internationalized_recipient_are_accepted(port, route):
    assert deliver(port, sender="")[2].startswith("250")
    with smtplib.SMTP("127.0.0.1", port.number, timeout=10) as client:
        client.ehlo()
        client.mail("j\u00f6rg@example.com", ["SMTPUTF8"])
        assert client.rcpt("gr\u00fc\u00dfe@alice.example")[0] == 250
        assert client.data(PLAIN)[0] == 250
    assert ReceivedEmail.objects.filter(recipient="gr\u00fc\u00dfe@alice.example").count() == 1


def test_bare_line_ends_end_the_session(port, route):
    with port.open_session() as session:
        assert session.exchange(b"MAIL FROM:<a@b.example>\n").startswith("521")


def test_a_forged_name_changes_neither_the_verdict_nor_blocks_nor_answers(port, route, key, settings):
    zone = {"bank.example": {"TXT": ['"v=spf1 +all"']}, "_dmarc.bank.example": {"TXT": ['"v=DMARC1; p=reject"']}}
    forged = PLAIN.replace(b"From: Ada Lovelace <ada@example.com>", b'From: "<x@evil.example>" <ada@bank.example>')
    with NameServer(zone) as server:
        settings.DNS_SERVERS = [server.address]
        assert deliver(port, forged, sender="bounce@bank.example")[2].startswith("250")
        process_received()
        shown = key.get(f"/inbound/emails/{ReceivedEmail.objects.get().id}").json()
        assert shown["from"] == {"email": "ada@bank.example", "name": "<x@evil.example>"}
        assert shown["authentication"]["dmarc"] == {"result": "pass", "policy": "reject", "domain": "bank.example"}
        body = {"from": "hi@alice.example", "text": "Hello", "inReplyToId": shown["id"]}
        assert key.post("/emails/send", body).status_code == 202
        assert Email.objects.get().to == ["ada@bank.example"]
        key.post("/inbound/blocks", {"sender": "ada@bank.example"})
        for sender in (
            b'"<ok@fine.example>" <ada@bank.example>', b"ok@fine.example, ada@bank.example", b'"ada"@BANK.example'
        ):  # fmt: skip
            deliver(port, PLAIN.replace(b"Ada Lovelace <ada@example.com>", sender), sender="bounce@fine.example")
            process_received()
            assert ReceivedEmail.objects.latest("received_at").blocked_reason == "sender_blocked"
