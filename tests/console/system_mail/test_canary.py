"""Canaries by real transports and servers on loopback: one that comes back, and those that are lost at each stage.

Time passes by moving the times of the rows.
"""

import base64
import smtplib
import threading
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.contrib.admin.utils import quote
from django.db.models import F
from django.test import Client
from django.urls import reverse

from config.celery import SCHEDULE
from config.heartbeats import send_heartbeat
from console.system_mail.canary import runs
from console.system_mail.canary.runs import check_canaries, start_due
from console.system_mail.models import CanaryRun, SystemMail, SystemMailKind
from console.system_mail.sending import SystemMailQueueWork
from core.counters.models import CounterDelta
from core.delivery.recipients import RecipientSetting, read_recipients
from core.delivery.transports.transports_file import read_transports
from core.lib.worker.processor import QueueProcessor
from core.workspaces.models import User, Workspace
from core.workspaces.recipients.rules import read_rules
from domains.models import DkimKey, Domain
from emails.models import Email
from emails.sending.transport_status import drain_transport
from emails.sending.transports import configured_transport
from interfaces.inbound.canary import MAX_BYTES, canary_subject
from interfaces.inbound.inbox.models import CaughtMail
from interfaces.inbound.models import MailReport
from receiving.models import Message
from tests.conftest import make_account, make_domain
from tests.console.dashboard.conftest import shown_text, signed_in
from tests.core.lib.nameserver import SERVFAIL, NameServer
from tests.interfaces.inbound.fixtures import run_inbound
from tests.receiving.builders import make_route, receive_for
from tests.sending_process import MailHost
from tests.stack.stack import free_port
from tests.threads import run_concurrently

pytestmark = pytest.mark.django_db(transaction=True)

OWN_ADDRESS, MAILBOX = "canary@in.demo.example", "canary@mailbox.example"
FORWARDED_TO = "canary@bounce.localhost"
KEY_NAME = "pr1._domainkey.service.example"
INTERVAL = timedelta(minutes=15)


class Switch(BaseHTTPRequestHandler):
    """A dead man's switch, which counts its calls. status: of its replies."""

    calls: list[str]
    status: int

    def do_GET(self):
        self.calls.append(self.path)
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def switch(settings):
    handler = type("OneSwitch", (Switch,), {"calls": [], "status": 200})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    settings.CANARY_PING_URL = f"http://127.0.0.1:{server.server_port}/check"
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


class Mailbox(MailHost):
    """The mail host of a mailbox that forwards to the installation, with another envelope and a further field."""

    def __init__(self, port=None):
        self.forwards_to, self.kept, self.reply = port, [], ""
        super().__init__()

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802
        if self.reply:
            return self.reply
        envelope.rcpt_tos.append(address)
        return "250 Ok"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        self.kept.append(envelope.content)
        return await super().handle_DATA(server, session, envelope)

    def forward(self):
        """Forward what came in, as a later process of the host does."""
        for source in self.kept:
            with smtplib.SMTP("127.0.0.1", self.forwards_to, timeout=10) as client:
                client.sendmail("mailbox-srs@mailbox.example", [FORWARDED_TO], b"X-Forwarded-To: x\r\n" + source)


@pytest.fixture
def dns(settings):
    with NameServer() as server:
        settings.DNS_SERVERS = [server.address]
        yield server


@pytest.fixture
def inbound(settings):
    with run_inbound() as port:
        settings.RECEIVING_SERVER = "127.0.0.1", port.number
        yield port


@pytest.fixture(autouse=True)
def _canary(settings, dns, switch):
    settings.CANARY_MINUTES, settings.CANARY_ADDRESS = 15, OWN_ADDRESS
    settings.RECEIVING_DOMAIN, settings.DELIVERY_TRANSPORT = "in.demo.example", "direct"
    settings.SYSTEM_FROM = "The Service <no-reply@service.example>"
    settings.DELIVERY_ALLOW_PRIVATE_NETWORKS = True
    settings.PUBLIC_URL = "https://postrider.example"
    make_domain(make_account("alice").workspace, "service.example")
    Domain.objects.update(status="verified")
    publish_key(dns)
    User.objects.filter(id=make_account("bob").owner.id).update(is_staff=True)
    send_heartbeat(None)


def publish_key(dns, text=None):
    text = text or DkimKey.objects.get().public_key
    record = f"v=DKIM1; k=rsa; p={text}"
    dns.put(KEY_NAME, {"TXT": [" ".join(f'"{record[at : at + 200]}"' for at in range(0, len(record), 200))]})


def other_public_key():
    public = rsa.generate_private_key(public_exponent=65_537, key_size=2048).public_key()
    return base64.b64encode(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


@contextmanager
def mailbox(settings, dns, port=None):
    """Run the mail host of MAILBOX, to which canaries go."""
    host = Mailbox(port)
    host.start()
    settings.CANARY_ADDRESS, settings.DIRECT_SMTP_PORT = MAILBOX, host.port
    dns.put("mailbox.example", {"MX": ["10 mx.mailbox.example."]})
    dns.put("mx.mailbox.example", {"A": ["127.0.0.1"]})
    try:
        yield host
    finally:
        host.stop()


def send():
    """Send system email, as a worker does."""
    QueueProcessor(SystemMailQueueWork(configured_transport())).run()


def pass_time(time=INTERVAL):
    """Let all runs have happened earlier."""
    names = ("started_at", "returned_at", "verified_at", "late_at", "pinged_at")
    CanaryRun.objects.update(**{name: F(name) - time for name in names})
    SystemMail.objects.update(due_at=F("due_at") - time)


def tick(*, is_sent=True):
    """Run the periodic task, and the worker."""
    check_canaries()
    if is_sent:
        send()


def warnings():
    return Client().get("/readyz").json().get("warnings", [])


def metric(name):
    lines = Client().get("/metrics").content.decode().splitlines()
    return [line.removeprefix(name) for line in lines if line.startswith(name)]


def notices():
    return list(SystemMail.objects.filter(kind=SystemMailKind.NOTICE).order_by("created_at"))


def expect_late(stage, reason=""):
    """Expect that a canary which was just sent is late, and how the staff hear of it, before two intervals end."""
    assert warnings() == notices() == []
    pass_time(INTERVAL + timedelta(seconds=30))
    (warning,) = warnings()
    tick(is_sent=False)
    (late,) = warnings()
    for text in (warning, late):
        assert text.startswith(f"The canary of the transport default is late. The last stage that worked: {stage}")
        assert reason in text
    (notice,) = notices()
    assert notice.subject.startswith("The canary of the transport default is late: ")
    assert "did not come back within 15 minutes" in notice.text
    assert reason in notice.text
    assert metric("postrider_canary_late") == ['{transport="default"} 1.0']
    assert CanaryRun.objects.order_by("started_at").first().stage == stage


class TestSuccess:
    def test_a_canary_comes_back_verified_and_the_switch_is_called(self, inbound, switch):
        tick()
        assert CanaryRun.objects.get().stage == "returned"
        assert switch.calls == []
        check_canaries()
        run = CanaryRun.objects.get()
        assert (run.stage, run.signature, run.source, run.late_at) == ("verified", "pass", None, None)
        assert run.started_at <= run.returned_at <= run.verified_at <= run.pinged_at
        assert switch.calls == ["/check"]
        check_canaries()
        assert (switch.calls, CanaryRun.objects.count(), warnings(), notices()) == (["/check"], 1, [], [])
        assert metric("postrider_canary_late") == ['{transport="default"} 0.0']
        (seconds,) = metric('postrider_canary_seconds{transport="default"} ')
        assert 0 <= float(seconds) < 60
        assert metric("postrider_canary_missing") == [" 0.0"]

    def test_a_mailbox_may_forward_it(self, settings, dns, inbound, switch):
        with mailbox(settings, dns, inbound.number) as host:
            tick()
            assert CanaryRun.objects.get().stage == "sent"
            host.forward()
            host.forward()
        check_canaries()
        assert CanaryRun.objects.get().stage == "verified"
        assert switch.calls == ["/check"]

    def test_the_next_one_is_sent_after_an_interval(self, inbound, switch):
        for _ in range(3):
            tick()
            tick()
            pass_time()
        assert CanaryRun.objects.count() == len(switch.calls) == 3

    def test_no_workspace_sees_anything_of_it(self, inbound):
        bob = Workspace.objects.get(name="bob")
        receive_for(make_domain(bob, "in.demo.example"))
        make_route(bob, domain="in.demo.example")
        tick()
        check_canaries()
        assert CanaryRun.objects.get().stage == "verified"
        for model in (Email, Message, MailReport, CounterDelta):
            assert not model.objects.exists()

    @pytest.mark.parametrize("status", [404, 500, 302])
    def test_a_call_that_fails_is_repeated(self, inbound, switch, status):
        switch.status = status
        tick()
        check_canaries()
        assert CanaryRun.objects.get().pinged_at is None
        switch.status = 200
        check_canaries()
        check_canaries()
        assert switch.calls == ["/check"] * 2

    def test_link_local_addresses_are_not_called(self, settings, inbound, caplog):
        settings.CANARY_PING_URL = "http://169.254.169.254/secret-check"
        tick()
        check_canaries()
        assert CanaryRun.objects.get().stage == "verified"
        assert CanaryRun.objects.get().pinged_at is None
        assert "CANARY_PING_URL could not be called" in caplog.text
        assert "secret-check" not in caplog.text


class TestLost:
    @pytest.mark.parametrize("answer", ["nothing", "failure"])
    def test_at_dns(self, settings, dns, inbound, switch, answer):
        settings.CANARY_ADDRESS = MAILBOX
        if answer == "failure":
            dns.put("mailbox.example", SERVFAIL)
        tick()
        reason = {"nothing": "The domain mailbox.example does not exist", "failure": "DNS lookup failed"}[answer]
        expect_late("claimed", reason)
        assert switch.calls == []

    def test_at_port_25(self, settings, dns, inbound, switch):
        with mailbox(settings, dns):
            settings.DIRECT_SMTP_PORT = free_port()
            tick()
        expect_late("claimed", "Could not connect")
        assert switch.calls == []

    def test_at_a_host_that_refuses_it(self, settings, dns, inbound, switch):
        with mailbox(settings, dns) as host:
            host.reply = "451 4.7.1 Not now"
            tick()
        expect_late("connected", "451 4.7.1 Not now")
        assert switch.calls == []

    def test_in_the_mailbox(self, settings, dns, inbound, switch):
        with mailbox(settings, dns):
            tick()
        expect_late("sent")
        assert switch.calls == []

    def test_at_the_receiver(self, settings, dns, switch):
        with mailbox(settings, dns, free_port()) as host:
            tick()
            with pytest.raises(ConnectionRefusedError):
                host.forward()
        expect_late("sent")
        assert switch.calls == []

    @pytest.mark.parametrize(("key", "result"), [("of another pair", "fail"), ("", "permerror")])
    def test_at_the_signature(self, dns, inbound, switch, key, result):
        if key:
            publish_key(dns, other_public_key())
        else:
            dns.remove(KEY_NAME)
        tick()
        check_canaries()
        expect_late("returned", f"DKIM: {result}")
        assert switch.calls == []

    def test_at_a_key_that_cannot_be_looked_up(self, dns, inbound, switch):
        dns.put(KEY_NAME, SERVFAIL)
        tick()
        check_canaries()
        assert CanaryRun.objects.get().source is not None
        expect_late("returned", "DKIM: not checked")
        assert CanaryRun.objects.order_by("started_at").first().source is None

    def test_without_a_signature(self, inbound):
        Domain.objects.update(status="pending")
        tick()
        check_canaries()
        expect_late("returned", "DKIM: none")

    def test_by_the_worker(self, inbound, switch):
        tick(is_sent=False)
        expect_late("accepted")
        assert switch.calls == []

    def test_by_beat(self, inbound, switch):
        tick()
        check_canaries()
        assert warnings() == []
        pass_time(1.4 * INTERVAL)
        assert warnings() == []
        pass_time(0.2 * INTERVAL)
        assert warnings() == ["No canary has been sent for 22 minutes: beat is not running."]
        assert metric("postrider_canary_missing") == [" 1.0"]
        assert switch.calls == ["/check"]

    def test_by_all_workers(self, settings, inbound):
        tick()
        check_canaries()
        settings.REDIS_URL = "redis://127.0.0.1:1/0"
        pass_time(1.6 * INTERVAL)
        assert warnings() == ["No canary has been sent for 22 minutes: no worker is running."]

    def test_readyz_stays_200_and_shows_strangers_nothing(self, inbound):
        tick(is_sent=False)
        pass_time(INTERVAL + timedelta(seconds=1))
        assert warnings()
        reply = Client().get("/readyz", REMOTE_ADDR="203.0.113.9")
        assert (reply.status_code, reply.json()) == (200, {"status": "ready"})

    def test_attempts_end_so_that_none_is_sent_later(self, settings, dns, inbound):
        settings.CANARY_ADDRESS = MAILBOX
        tick()
        pass_time(INTERVAL + timedelta(seconds=1))
        runs.end_late()
        with mailbox(settings, dns) as host:
            pass_time(timedelta(hours=1))
            send()
            assert MAILBOX not in host.recipients

    def test_one_notice_for_a_failure_and_one_for_its_end(self, settings, dns, inbound):
        for _ in range(3):
            tick(is_sent=False)
            pass_time(INTERVAL + timedelta(seconds=1))
        check_canaries()
        assert len(notices()) == 1
        SystemMail.objects.filter(kind=SystemMailKind.NOTICE).update(state="sent")
        tick()
        check_canaries()
        assert [mail.subject for mail in notices()][1:] == ["The canary of the transport default arrives again"]
        assert warnings() == []
        pass_time(INTERVAL + timedelta(seconds=1))
        tick()
        check_canaries()
        assert len(notices()) == 2

    def test_one_that_comes_back_too_late_stays_late(self, settings, dns, inbound, switch):
        with mailbox(settings, dns, inbound.number) as host:
            tick()
            pass_time(INTERVAL + timedelta(seconds=1))
            runs.end_late()
            host.forward()
        runs.verify_returned()
        runs.ping_after_success()
        run = CanaryRun.objects.get()
        assert (run.stage, run.is_late, run.source) == ("verified", True, None)
        assert switch.calls == []
        assert len(notices()) == 1


@pytest.fixture
def two(settings, tmp_path):
    """The transports own, which is down, and relay, which delivers to the receiver."""

    def configure(port):
        path = tmp_path / "transports.yaml"
        path.write_text(
            f"""
transports:
  own: {{kind: smtp, url: 'smtp://127.0.0.1:{free_port()}?tls=none'}}
  relay: {{kind: smtp, url: 'smtp://127.0.0.1:{port}?tls=none'}}
routes: {{default: {{use: [own, relay]}}}}
"""
        )
        settings.TRANSPORTS, settings.DELIVERY_TRANSPORT = read_transports(path), "named"

    return configure


class TestSeveralTransports:
    def test_each_sends_one_in_turn_and_only_the_lost_one_is_named(self, two, inbound, switch):
        two(inbound.number)
        for _ in range(4):
            tick()
            check_canaries()
            pass_time()
        check_canaries()
        found = CanaryRun.objects.order_by("started_at")
        assert list(found.values_list("transport", flat=True))[:4] == ["own", "relay", "own", "relay"]
        assert len(switch.calls) == 2
        (warning,) = warnings()
        assert warning.startswith("The canary of the transport own is late. The last stage that worked: claimed")
        assert metric("postrider_canary_late") == ['{transport="own"} 1.0', '{transport="relay"} 0.0']

    def test_the_email_about_it_leaves_by_the_other_one(self, two):
        host = MailHost()
        host.start()
        try:
            two(host.port)
            tick()
            pass_time(INTERVAL + timedelta(seconds=1))
            tick()
            assert "bob@bob.example" in host.recipients
            assert notices()[0].handed_to == "relay"
        finally:
            host.stop()

    def test_a_drained_transport_is_left_out(self, two, inbound):
        two(inbound.number)
        drain_transport("own")
        for _ in range(2):
            tick()
            check_canaries()
            pass_time()
        assert set(CanaryRun.objects.values_list("transport", flat=True)) == {"relay"}
        drain_transport("relay")
        check_canaries()
        assert CanaryRun.objects.count() == 2


class TestCaptured:
    """An installation whose canaries cannot leave (docs/decisions/0400)."""

    @pytest.fixture(params=["captured", "redirect:qa@test-team.example", "rules"])
    def capture(self, request, settings):
        """Return a function that changes RECIPIENTS, so that no canary leaves."""

        def change():
            rules = RecipientSetting(rules=read_rules(allow=["@example.com"]))
            settings.RECIPIENTS = rules if request.param == "rules" else read_recipients(request.param)

        return change

    def test_one_that_was_queued_before_stays_in_the_inbox(self, inbound, capture):
        start_due()
        capture()
        send()
        assert CanaryRun.objects.get().returned_at is None
        assert [*CaughtMail.objects.values_list("recipient", "workspace")] == [(OWN_ADDRESS, None)]

    def test_none_is_sent_and_readyz_says_so(self, inbound, switch, capture):
        capture()
        for _ in range(3):
            tick()
            pass_time(2 * INTERVAL)
        assert not SystemMail.objects.exists()
        assert warnings() == [f"No canary is sent: RECIPIENTS lets no email leave for {OWN_ADDRESS}."]
        assert metric("postrider_canary") == []
        assert switch.calls == []
        assert Client().get("/readyz").status_code == 200

    def test_one_without_a_result_is_deleted_and_is_never_late(self, inbound, capture, settings):
        tick()
        check_canaries()
        pass_time()
        tick(is_sent=False)
        capture()
        check_canaries()
        assert [run.stage for run in CanaryRun.objects.all()] == ["verified"]
        settings.RECIPIENTS = read_recipients("all")
        pass_time(2 * INTERVAL)
        tick()
        check_canaries()
        assert [run.stage for run in CanaryRun.objects.all()] == ["verified"] * 2
        assert warnings() == notices() == []

    def test_one_that_was_late_before_stays_but_warns_nobody(self, capture):
        tick(is_sent=False)
        pass_time(INTERVAL + timedelta(seconds=1))
        check_canaries()
        capture()
        assert metric("postrider_canary_late") == []
        check_canaries()
        assert CanaryRun.objects.exclude(late_at=None).count() == 1
        assert len(warnings()) == 1

    def test_rules_that_allow_its_address_let_it_leave(self, inbound, settings, switch):
        settings.RECIPIENTS = RecipientSetting(rules=read_rules(allow=[OWN_ADDRESS]))
        tick()
        check_canaries()
        assert (CanaryRun.objects.get().stage, switch.calls, warnings()) == ("verified", ["/check"], [])


class TestStrangers:
    def message(self, subject):
        return f"From: eve@example.com\r\nSubject: {subject}\r\n\r\nHello\r\n".encode()

    @pytest.mark.parametrize("subject", ["Hello", "canary-", "canary-" + "a" * 53, "canary-" + "a" * 500])
    def test_a_message_without_a_token_is_refused_and_not_stored(self, inbound, subject):
        code, text = inbound.send(self.message(subject), OWN_ADDRESS)
        assert (code, text) == (550, b"5.7.1 Not a canary of this installation")
        assert not Message.objects.exists()
        assert not MailReport.objects.exists()

    def test_a_large_message_is_refused(self, inbound):
        start_due()
        subject = canary_subject(CanaryRun.objects.get().id)
        source = self.message(subject) + b"x" * 70 + b"\r\n" + (b"x" * 70 + b"\r\n") * (MAX_BYTES // 72)
        assert inbound.send(source, OWN_ADDRESS)[0] == 552
        assert CanaryRun.objects.get().returned_at is None

    def test_a_token_alone_is_no_success(self, inbound, switch):
        """A host on the way knows the token, but has no key of the sender's domain."""
        start_due()
        run = CanaryRun.objects.get()
        assert inbound.send(self.message(canary_subject(run.id)), FORWARDED_TO.upper())[0] == 250
        check_canaries()
        run.refresh_from_db()
        assert (run.stage, run.signature) == ("returned", "none")
        assert switch.calls == []

    def test_a_token_of_a_deleted_run_changes_nothing(self, inbound):
        start_due()
        subject = canary_subject(CanaryRun.objects.get().id)
        SystemMail.objects.all().delete()
        assert inbound.send(self.message(subject), OWN_ADDRESS)[0] == 250
        assert not CanaryRun.objects.exists()

    def test_the_addresses_exist_only_with_canaries(self, settings, inbound):
        settings.CANARY_MINUTES = 0
        for address in (OWN_ADDRESS, FORWARDED_TO):
            assert inbound.send(self.message("Hello"), address)[0] == 550


class TestTask:
    def test_two_at_once_send_one(self):
        run_concurrently(lambda _: start_due(), range(4))
        assert CanaryRun.objects.count() == SystemMail.objects.count() == 1

    def test_nothing_happens_without_the_setting(self, settings, django_assert_num_queries):
        settings.CANARY_MINUTES = 0
        assert "canary" not in SCHEDULE
        with django_assert_num_queries(0):
            check_canaries()
        assert warnings() == []
        assert metric("postrider_canary") == []


class TestStaffPage:
    def test_it_shows_each_run_with_its_stage(self, settings, inbound):
        staff = signed_in(User.objects.create_superuser("staff@postrider.example", "correct horse battery"))
        User.objects.update(language="de")
        tick()
        check_canaries()
        page = reverse("admin:system_mail_canaryrun_changelist")
        assert "default Verifiziert" in shown_text(staff.get(page))
        assert f'href="{page}"' in staff.get("/admin/").content.decode()
        run = CanaryRun.objects.get()
        details = staff.get(reverse("admin:system_mail_canaryrun_change", args=[quote(run.id)]))
        assert "Vom Host angenommen" in shown_text(details)
        settings.CANARY_MINUTES = 0
        assert f'href="{page}"' not in staff.get("/admin/").content.decode()
