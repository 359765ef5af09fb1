"""Named transports from the queue to the timeline: two real mail hosts count the copies that they receive."""

import asyncio
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from console.system_mail.models import SystemMail, SystemMailKind
from console.system_mail.sending import SystemMailQueueWork
from console.system_mail.services import queue_system_mail
from core.counters.models import DailyCounter
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.recipients import read_recipients
from core.delivery.transports.router import TransportChange
from core.delivery.transports.transports_file import read_transports, single_transport
from core.lib.worker.stages import Stage
from emails.models import QueueEntry, Recipient, TransportUse
from emails.sending import delivery_health
from emails.sending.emails_work import EmailQueueWork
from emails.sending.outcomes import SendResult, record_results
from emails.sending.scheduling import promote_due
from emails.sending.transport_status import read_statuses, reserve, send_changes
from emails.sending.transports import configured_transport
from events.models import Event
from streams.services import create_stream
from tests.conftest import mail
from tests.emails.builders import accept, claim_entries, fold
from tests.sending_process import MailHost, perform_jobs
from tests.threads import own_connection

# The transport of a message is stored by another thread.
pytestmark = pytest.mark.django_db(transaction=True)

UNKNOWN = DeliveryOutcome(
    DeliveryStatus.DEFERRED,
    Reply(0, "The connection broke."),
    "outcome_unknown",
    may_be_delivered=True,
    transport="own",
)
REFUSED = DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(0, "Refused."), "network", transport="own")


class Host(MailHost):
    """A mail host with a reply for each stage. seen: what the queue says while the last block is being received."""

    def __init__(self):
        self.replies, self.seen = {}, []
        super().__init__()

    async def handle_MAIL(self, server, session, envelope, address, options):  # noqa: N802
        if "mail" in self.replies:
            return self.replies["mail"]
        envelope.mail_from = address
        return "250 Ok"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        self.seen += await asyncio.get_running_loop().run_in_executor(None, own_connection(_handed_to))
        reply = await super().handle_DATA(server, session, envelope)
        if self.replies.get("dot") == "close":
            server.transport.abort()
        return reply


def _handed_to():
    return list(QueueEntry.objects.order_by("pk").values_list("handed_to", flat=True))


@pytest.fixture
def hosts():
    with ExitStack() as stack:
        started = {}
        for name in ("own", "relay"):
            host = started[name] = Host()
            host.start()
            stack.callback(host.stop)
            host.connections = 0
        yield started


@pytest.fixture
def named(settings, hosts, tmp_path):
    """Return a function that sets the transports own and relay; options: further lines of each, and of the file."""

    def configure(*, own="", relay="", rest="routes: {default: {use: [own, relay]}}"):
        path = tmp_path / "transports.yaml"
        lines = [
            f"  {name}: {{kind: smtp, url: 'smtp://127.0.0.1:{hosts[name].port}?tls=none'{more}}}"
            for name, more in (("own", own), ("relay", relay))
        ]
        path.write_text("\n".join(["transports:", *lines, rest]))
        settings.TRANSPORTS, settings.DELIVERY_TRANSPORT = read_transports(path), "named"

    configure()
    return configure


class Worker:
    """The email queue of one process, with its transports."""

    def __init__(self):
        self.work = EmailQueueWork(configured_transport(), sessions=50)

    def send(self):
        """Send everything that is or becomes due; return the outcomes."""
        promote_due()
        QueueEntry.objects.filter(stage=Stage.WAITING).update(stage=Stage.READY)
        results = perform_jobs(self.work, self.work.claim(50).jobs)
        self.work.record(results)
        return [result.outcome for result in results]


def send():
    return Worker().send()


def recipients(hosts):
    return {name: list(host.recipients) for name, host in hosts.items()}


def entry():
    return QueueEntry.objects.get()


def timeline(**fields):
    events = Event.objects.filter(recipient__isnull=False).order_by("number")
    return [(event.kind, event.payload.get("transport"), event.payload.get("nextTransport")) for event in events]


class TestSending:
    def test_the_row_names_the_transport_before_the_last_block(self, named, workspace, hosts):
        accept(workspace)
        send()
        assert recipients(hosts) == {"own": ["ada@example.com"], "relay": []}
        assert hosts["own"].seen == ["own"]
        assert Recipient.objects.get().transport == "own"
        assert timeline() == [("sent", "own", None)]

    def test_without_a_file_the_column_stays_empty_and_no_statement_is_added(self, settings, workspace, hosts):
        settings.DELIVERY_TRANSPORT, settings.SMTP_URL = "smtp", f"smtp://127.0.0.1:{hosts['own'].port}?tls=none"
        accept(workspace)
        send()
        assert hosts["own"].seen == [None]
        assert timeline() == [("sent", None, None)]
        assert Recipient.objects.get().transport is None
        assert not TransportUse.objects.exists()
        accept(workspace, count=3)
        worker = Worker()
        worker.send()
        accept(workspace, count=3)
        with CaptureQueriesContext(connection) as queries:
            assert len(worker.work.claim(50).jobs) == 3
        statements = [query["sql"] for query in queries if "emails_transport" in query["sql"]]
        updates = [query["sql"] for query in queries if query["sql"].strip().startswith("UPDATE emails_pending")]
        # The drained transports are read every two seconds.
        assert statements == []
        assert [sql for sql in updates if "handed_to =" in sql.partition("WHERE")[0] and "stage" not in sql] == []

    def test_a_certain_failure_goes_on_by_the_next_transport_in_the_same_claim(self, named, workspace, hosts):
        hosts["own"].replies["mail"] = "530 5.7.0 Authentication required"
        accept(workspace)
        (outcome,) = send()
        assert (outcome.status, outcome.transport) == (DeliveryStatus.SENT, "relay")
        assert recipients(hosts) == {"own": [], "relay": ["ada@example.com"]}
        assert hosts["relay"].seen == ["relay"]
        assert Recipient.objects.get().attempts == 1
        assert timeline() == [("deferred", "own", "relay"), ("sent", "relay", None)]
        counted = {(one.transport, one.status): one.count for one in delivery_health.read_outcome_counts() if one.count}
        assert counted == {("own", "deferred"): 1, ("relay", "sent"): 1}
        assert delivery_health.sent_today() == {"relay": 1}
        fold()
        DailyCounter.objects.update(day=F("day") - timedelta(days=1))
        assert delivery_health.sent_today() == {}

    def test_a_host_that_never_answers_the_last_byte_keeps_the_message(self, named, workspace, hosts):
        hosts["own"].replies["dot"] = "close"
        accept(workspace)
        (outcome,) = send()
        assert (outcome.reason, entry().handed_to) == ("outcome_unknown", "own")
        hosts["own"].replies = {"mail": "421 4.3.2 Going down"}
        assert send()[0].transport == "own"
        assert entry().handed_to == "own"
        hosts["own"].replies = {}
        send()
        assert recipients(hosts) == {"own": ["ada@example.com"] * 2, "relay": []}
        assert timeline() == [("deferred", "own", None), ("deferred", "own", None), ("sent", "own", None)]

    def test_the_message_id_stays_the_same(self, named, workspace, hosts):
        hosts["own"].replies["dot"] = "close"
        accept(workspace)
        worker = Worker()
        ids = []
        for _ in range(2):
            QueueEntry.objects.update(stage=Stage.READY)
            (job,) = worker.work.claim(50).jobs
            ids.append((job.key, job.claim.handed_to))
            worker.work.record([SendResult(job.claim, UNKNOWN)])
        assert ids[0][0] == ids[1][0]
        assert [pin for _, pin in ids] == ["", "own"]

    def test_a_certain_refusal_frees_the_message(self, named, workspace, hosts):
        hosts["own"].replies = hosts["relay"].replies = {"mail": "421 4.3.2 Going down"}
        accept(workspace)
        send()
        assert entry().handed_to is None
        hosts["relay"].replies = {}
        send()
        assert recipients(hosts) == {"own": [], "relay": ["ada@example.com"]}

    def test_a_lost_lease_pins_the_message_once_a_transport_was_stored(self, named, workspace, hosts):
        accept(workspace)
        Worker().work.claim(50)
        QueueEntry.objects.update(due_at=Now() - timedelta(minutes=5))
        promote_due()
        assert entry().handed_to == "own"
        hosts["own"].replies["mail"] = "421 4.3.2 Going down"
        assert send()[0].transport == "own"
        assert recipients(hosts)["relay"] == []

    def test_a_captured_message_takes_none_of_them_nor_the_one_that_may_have_it(
        self, named, workspace, hosts, settings
    ):
        named(own=", perDay: 10")
        accept(workspace)
        Worker().work.claim(50)
        QueueEntry.objects.update(due_at=Now() - timedelta(minutes=5))
        accept(workspace)
        settings.RECIPIENTS = read_recipients("captured")
        named(rest="routes: {default: {use: [relay]}}")
        assert [outcome.transport for outcome in send()] == ["", ""]
        assert recipients(hosts) == {"own": [], "relay": []}
        assert timeline()[-1] == ("delivered", None, None)

    def test_a_worker_that_dies_before_it_stores_a_transport_pins_nothing(self, named, workspace, hosts):
        accept(workspace)
        (claim,) = claim_entries()
        assert (claim.handed_to, entry().handed_to) == ("", "")
        QueueEntry.objects.update(due_at=Now() - timedelta(minutes=5))
        promote_due()
        assert entry().handed_to is None
        hosts["own"].replies["mail"] = "421 4.3.2 Going down"
        send()
        assert recipients(hosts)["relay"] == ["ada@example.com"]

    def test_a_worker_that_lost_its_lease_stores_no_other_transport(self, named, workspace, hosts):
        hosts["own"].replies["mail"] = "421 4.3.2 Going down"
        accept(workspace)
        worker = Worker()
        jobs = worker.work.claim(50).jobs
        QueueEntry.objects.update(fence=99)
        (result,) = perform_jobs(worker.work, jobs)
        assert result.outcome.reason == "lease_lost"
        assert entry().handed_to == "own"
        assert recipients(hosts) == {"own": [], "relay": []}

    def test_an_unknown_outcome_before_there_was_a_file_pins_to_default(self, settings, workspace, hosts, named):
        settings.TRANSPORTS = single_transport("smtp")
        accept(workspace)
        (claim,) = claim_entries()
        record_results(
            [SendResult(claim, DeliveryOutcome(UNKNOWN.status, UNKNOWN.reply, UNKNOWN.reason, may_be_delivered=True))]
        )
        assert entry().handed_to == "default"

    def test_a_removed_transport_is_waited_for_until_the_maximum_age(self, named, workspace, hosts, settings):
        accept(workspace)
        worker = Worker()
        (job,) = worker.work.claim(50).jobs
        worker.work.record([SendResult(job.claim, UNKNOWN)])
        QueueEntry.objects.update(handed_to="gone")
        worker = Worker()
        (outcome,) = worker.send()
        assert (outcome.status, entry().handed_to) == (DeliveryStatus.PARKED, "gone")
        assert "'gone'" in worker.work._transport.trouble
        QueueEntry.objects.update(since=Now() - timedelta(days=2))
        worker.send()
        recipient = Recipient.objects.get()
        assert (recipient.state, recipient.reason) == ("failed", "outcome_unknown")
        assert recipients(hosts) == {"own": [], "relay": []}

    def test_a_pinned_message_that_cannot_be_sent_any_more_has_an_unknown_outcome(self, named, workspace):
        accept(workspace)
        worker = Worker()
        (job,) = worker.work.claim(50).jobs
        worker.work.record([SendResult(job.claim, UNKNOWN)])
        QueueEntry.objects.update(stage=Stage.READY, since=Now() - timedelta(days=2))
        (job,) = worker.work.claim(50).jobs
        worker.work.record([SendResult(job.claim, REFUSED)])
        recipient = Recipient.objects.get()
        assert (recipient.state, recipient.reason) == ("failed", "outcome_unknown")

    def test_an_internal_error_leaves_the_transport_that_was_stored(self, named, workspace):
        accept(workspace)
        worker = Worker()
        (job,) = worker.work.claim(50).jobs
        worker.work.record([worker.work.crash_result(job, ValueError())])
        assert entry().handed_to == "own"


class TestRoutes:
    REST = """
routes:
  default: {use: [own]}
  bulk: {use: [relay]}
workspaces: {default: [default, bulk]}
"""

    def test_a_stream_may_name_a_route(self, named, workspace, hosts):
        named(rest=self.REST)
        create_stream(workspace, slug="news", name="News", transport_route="bulk")
        accept(workspace)
        accept(workspace, "grace@example.com", stream="news")
        send()
        assert recipients(hosts) == {"own": ["ada@example.com"], "relay": ["grace@example.com"]}

    def test_a_workspace_has_its_own_route(self, named, workspace, hosts):
        named(rest=self.REST.replace("[default, bulk]", f"default, {workspace.id}: bulk"))
        accept(workspace)
        send()
        assert recipients(hosts) == {"own": [], "relay": ["ada@example.com"]}


class TestDailyLimit:
    def test_the_next_transport_gets_what_exceeds_the_limit(self, named, workspace, hosts):
        named(own=", perDay: 2")
        accept(workspace, "a@example.com", "b@example.com", "c@example.com", "d@example.com")
        send()
        assert {name: len(sent) for name, sent in recipients(hosts).items()} == {"own": 2, "relay": 2}
        assert TransportUse.objects.get(name="own").used == 2

    def test_a_message_that_was_certainly_not_taken_does_not_count(self, named, workspace, hosts):
        named(own=", perDay: 2")
        hosts["own"].replies["mail"] = "421 4.3.2 Going down"
        accept(workspace, "a@example.com", "b@example.com")
        send()
        assert len(hosts["relay"].recipients) == 2
        assert TransportUse.objects.get(name="own").used == 0

    def test_a_worker_that_lost_its_lease_uses_no_message_of_the_next_transport(self, named, workspace, hosts):
        named(relay=", perDay: 2")
        hosts["own"].replies["mail"] = "421 4.3.2 Going down"
        accept(workspace)
        worker = Worker()
        jobs = worker.work.claim(50).jobs
        QueueEntry.objects.update(fence=99)
        TransportUse.objects.update_or_create(name="relay", defaults={"used": 1, "used_on": datetime.now(UTC).date()})
        perform_jobs(worker.work, jobs)
        assert TransportUse.objects.get(name="relay").used == 1

    def test_the_mail_waits_until_midnight_if_no_other_transport_is_left(self, named, workspace, hosts):
        named(own=", perDay: 1", rest="routes: {default: {use: [own]}}\n")
        accept(workspace, "a@example.com", "b@example.com")
        send()
        assert len(hosts["own"].recipients) == 1
        assert ("deferred", "own", None) in timeline()
        assert Event.objects.get(kind="deferred").payload["reason"] == "daily_limit"
        assert entry().handed_to is None
        # Yesterday's count, as the row is after midnight by the database's clock.
        TransportUse.objects.update(used_on=datetime.now(UTC).date() - timedelta(days=1))
        send()
        assert len(hosts["own"].recipients) == 2

    def test_the_wait_ends_in_the_first_minute_of_the_day(self, named, workspace, settings):
        settings.DELIVERY_RETRY_SECONDS = [3 * 86_400]
        settings.DELIVERY_MAX_AGE = 7 * 86_400
        accept(workspace)
        (claim,) = claim_entries()
        limit = DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(0, "Limit."), "daily_limit", transport="own")
        record_results([SendResult(claim, limit)])
        due_at = entry().due_at.astimezone(UTC)
        assert (due_at.hour, due_at.minute) in {(0, 0), (0, 1)}
        assert timedelta() < due_at - datetime.now(UTC) <= timedelta(days=1, minutes=2)

    def test_a_reached_limit_ends_at_midnight_utc(self, named):
        _, seconds = reserve("own", count=1, limit=1)
        now = datetime.now(UTC)
        midnight = datetime.combine(now.date(), datetime.min.time(), UTC) + timedelta(days=1)
        assert abs(seconds - (midnight - now).total_seconds()) < 30

    def test_two_processes_never_exceed_the_limit_together(self, named):
        granted = [reserve("own", count=30, limit=50)[0] for _ in range(3)]
        assert granted == [30, 20, 0]


class TestOperator:
    def test_a_drained_transport_gets_no_new_mail_until_it_is_resumed(self, named, workspace, hosts):
        call_command("transport", "drain", "own")
        accept(workspace)
        send()
        assert recipients(hosts) == {"own": [], "relay": ["ada@example.com"]}
        assert [status.state for status in read_statuses()] == ["draining", "open"]
        call_command("transport", "resume", "own")
        accept(workspace)
        send()
        assert len(hosts["own"].recipients) == 1

    def test_draining_needs_a_known_name(self, named):
        with pytest.raises(CommandError, match="only own, relay"):
            call_command("transport", "drain", "x")

    def test_staff_get_an_email_at_most_once_an_hour(self, named, alice, bob):
        type(alice.owner).objects.filter(id=alice.owner.id).update(is_staff=True)
        paused, resumed = TransportChange("own", True, "535 refused"), TransportChange("own", False)
        send_changes([paused, resumed, paused, resumed])
        mails = list(SystemMail.objects.order_by("created_at"))
        assert [mail.recipient for mail in mails] == [alice.owner.email] * 2
        assert [mail.subject for mail in mails] == ["The transport own is paused", "The transport own works again"]
        assert "535 refused" in mails[0].text
        TransportUse.objects.update(paused_notice_at=Now() - timedelta(minutes=61))
        send_changes([paused])
        assert SystemMail.objects.count() == 3

    def test_a_worker_tells_the_staff_when_it_pauses_a_transport(self, named, workspace, hosts, alice):
        type(alice.owner).objects.filter(id=alice.owner.id).update(is_staff=True)
        hosts["own"].replies["mail"] = "530 5.7.0 Authentication required"
        accept(workspace, "a@example.com", "b@example.com", "c@example.com")
        worker = Worker()
        worker.send()
        assert "530 5.7.0 Authentication required" in SystemMail.objects.get().text
        accept(workspace)
        attempts = hosts["own"].connections
        worker.send()
        assert hosts["own"].connections == attempts


class TestSystemEmail:
    def queue(self):
        return queue_system_mail(to="ada@example.com", kind=SystemMailKind.RESET, subject="Reset", text="Text")

    def send(self):
        work = SystemMailQueueWork(configured_transport())
        SystemMail.objects.update(due_at=Now())
        results = perform_jobs(work, work.claim(5).jobs)
        work.record(results)
        return [result.outcome for result in results]

    @pytest.fixture(autouse=True)
    def _sender(self, settings):
        settings.SYSTEM_FROM = "The Service <no-reply@service.example>"

    def test_it_fails_over_while_it_is_certain(self, named, hosts):
        hosts["own"].replies["mail"] = "421 4.3.2 Going down"
        self.queue()
        (outcome,) = self.send()
        assert (outcome.transport, recipients(hosts)["relay"]) == ("relay", ["ada@example.com"])

    def test_it_stays_with_a_transport_that_may_have_it(self, named, hosts):
        hosts["own"].replies["dot"] = "close"
        self.queue()
        self.send()
        assert SystemMail.objects.get().handed_to == "own"
        hosts["own"].replies = {"mail": "421 4.3.2 Going down"}
        self.send()
        assert SystemMail.objects.get().handed_to == "own"
        assert recipients(hosts)["relay"] == []

    def test_a_message_that_was_certainly_not_taken_does_not_count(self, named, hosts):
        named(own=", perDay: 2")
        hosts["own"].replies["mail"] = "421 4.3.2 Going down"
        self.queue()
        self.send()
        assert len(hosts["relay"].recipients) == 1
        assert TransportUse.objects.get(name="own").used == 0

    def test_it_tells_the_staff_when_it_pauses_a_transport(self, named, hosts, alice):
        type(alice.owner).objects.filter(id=alice.owner.id).update(is_staff=True)
        hosts["own"].replies["mail"] = "530 5.7.0 Authentication required"
        for _ in range(3):
            self.queue()
        self.send()
        assert SystemMail.objects.filter(subject="The transport own is paused").count() == 1

    def test_it_waits_for_a_removed_transport_until_the_maximum_age(self, named, hosts):
        self.queue()
        SystemMail.objects.update(handed_to="gone")
        self.send()
        assert SystemMail.objects.get().state == "waiting"
        SystemMail.objects.update(created_at=Now() - timedelta(days=2))
        self.send()
        assert SystemMail.objects.get().state == "failed"
        assert recipients(hosts) == {"own": [], "relay": []}


class TestVisibility:
    @pytest.fixture
    def email_id(self, named, hosts, api):
        hosts["own"].replies["mail"] = "530 5.7.0 Authentication required"
        email_id = api.post("/emails/send", mail()).json()["id"]
        send()
        return email_id

    def test_the_owner_sees_no_names_unless_the_operator_shows_them(self, email_id, api, settings):
        def payloads():
            events = api.get(f"/emails/{email_id}/events").json()["data"]
            feed = api.get("/events").json()["data"]
            return [event["payload"] for event in events], [event["data"] for event in feed]

        assert "own" not in str(payloads()).split("'")
        settings.SHOW_TRANSPORTS = True
        timeline, _ = payloads()
        assert [payload.get("transport") for payload in timeline] == [None, "own", "relay"]
        assert [payload.get("nextTransport") for payload in timeline] == [None, "relay", None]
