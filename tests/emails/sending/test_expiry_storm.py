"""A storm over emails with expiries: retries, kills, pauses and time that passes at any place.

No final dot after an expiry, and one outcome for each recipient. Rows move into the past, and the boot clock into the
future, never the clock of the database.
"""

import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime

import pytest
from django.db import connection

from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.transports.interface import LeaseLost
from core.lib.email_addresses import parse_address
from core.lib.ids import from_uuid
from core.lib.worker import leases
from core.lib.worker.stages import Stage
from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.models import Workspace
from emails.accept.batches import create_batch, pause_batch, resume_batch
from emails.accept.drafts import Draft
from emails.accept.services import accept_emails
from emails.models import EmailBatch, QueueEntry, Recipient
from emails.sending.emails_work import EmailQueueWork
from emails.sending.scheduling import fail_expired
from emails.sending.sending_checks import pause_sending, resume_sending
from events.models import Event
from streams.services import create_stream, pause_stream, resume_stream
from tests.conftest import later
from tests.emails.builders import LATER, OK, PARKED, change_workspace, counter_values
from tests.sending_process import perform_jobs

# Its statements have times of their own.
pytestmark = pytest.mark.django_db(transaction=True)
UNKNOWN = DeliveryOutcome(
    DeliveryStatus.DEFERRED, Reply(0, "The connection broke."), "outcome_unknown", may_be_delivered=True
)
TAKING = (OK, UNKNOWN)
# Emails, and those of them that are accepted at a time.
QUICK, LONG = (150, 50), (100_000, 5_000)
# The hosts are calm in the second half.
MAX_STEPS = 120
SHIFT_ENTRIES = """
UPDATE emails_pending
   SET since = since - make_interval(secs => %(by)s), expires_at = expires_at - make_interval(secs => %(by)s),
       due_at = CASE WHEN due_at < '9999-01-01' THEN due_at - make_interval(secs => %(by)s) ELSE due_at END
"""
SHIFT_EMAILS = """
UPDATE emails_email SET expires_at = expires_at - make_interval(secs => %(by)s),
       scheduled_for = scheduled_for - make_interval(secs => %(by)s)
 WHERE finished_at IS NULL
"""
# Without those that expire between two statements.
OVERDUE = f"""
SELECT count(*) FROM emails_pending WHERE expires_at <= now() - interval '1 second' AND stage <> {Stage.LEASED}
"""
EXPIRIES = """
SELECT recipient_id, extract(epoch FROM expires_at - clock_timestamp())::float FROM emails_pending
 WHERE expires_at IS NOT NULL
"""


class Clock:
    """The boot clock of all workers, which can be moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._read, self._ahead, self.unshifted = leases.boot_seconds, 0.0, 0.0
        modules = "core.lib.worker.leases", "emails.sending.expiry", "emails.sending.jobs", "tests.sending_process"
        for module in modules:
            monkeypatch.setattr(f"{module}.boot_seconds", self.seconds)

    def seconds(self) -> float:
        return self._read() + self._ahead

    def advance(self, seconds: float) -> None:
        """Let time pass for workers; `shift_rows` moves the rows before the next statement."""
        self._ahead += seconds
        self.unshifted += seconds

    def shift_rows(self) -> None:
        seconds, self.unshifted = self.unshifted, 0.0
        if seconds:
            with connection.cursor() as cursor:
                cursor.execute(SHIFT_ENTRIES, {"by": seconds})
                cursor.execute(SHIFT_EMAILS, {"by": seconds})


class FailingHosts:
    """A transport whose hosts defer, break the connection or accept, after any time."""

    trouble = None

    def __init__(self, rng: random.Random, clock: Clock) -> None:
        self.rng, self.clock = rng, clock
        self.is_calm = False
        # The end of the possible time of a final dot by recipient, in seconds of the boot clock.
        self.expiries: dict[str, float] = {}
        self.late: list[str] = []
        self.taken: Counter[str] = Counter()
        self.dots = 0

    async def deliver(self, message, *, lease):
        if not self.is_calm and self.rng.random() < 0.02:
            self.clock.advance(self.rng.uniform(0, 40))
        if not lease.is_valid():
            raise LeaseLost
        self.dots += 1
        recipient = message.message_id[1:].partition("@")[0]
        if self.clock.seconds() > self.expiries.get(recipient, float("inf")):
            self.late.append(recipient)
        outcome = OK if self.is_calm else self.rng.choices([OK, LATER, UNKNOWN, PARKED], [5, 5, 1, 1])[0]
        self.taken[recipient] += outcome in TAKING
        return outcome

    def end_sessions(self):
        pass


class Storm:
    """Waves of emails that are worked off while workers are killed and sending is paused."""

    def __init__(self, workspace: Workspace, rng: random.Random, clock: Clock, *, wave: int) -> None:
        self.workspace, self.rng, self.clock, self.wave = workspace, rng, clock, wave
        self.hosts = FailingHosts(rng, clock)
        create_stream(workspace, slug="codes", name="Codes", deliver_within=45)
        self.work = self.start_worker()
        self.resumes: list[Callable[[], object]] = []

    def start_worker(self) -> EmailQueueWork:
        return EmailQueueWork(self.hosts, sessions=self.wave)

    def run(self, emails: int) -> None:
        for _ in range(0, emails, self.wave):
            self.accept(self.wave)
            for step in range(MAX_STEPS):
                if not QueueEntry.objects.exists():
                    break
                self.hosts.is_calm = step > MAX_STEPS // 2
                self.act()
            assert not QueueEntry.objects.exists()
            self.hosts.expiries.clear()
            self.resume_all()

    def accept(self, count: int) -> None:
        self.clock.shift_rows()
        self.batch = create_batch(self.workspace, limits=NO_LIMITS)
        drafts = [self.draft(number) for number in range(count)]
        body = accept_emails(self.workspace, drafts=drafts, key=None, limits=NO_LIMITS, all_or_nothing=True).body
        assert len(body["results"]) == count
        with connection.cursor() as cursor:
            cursor.execute(EXPIRIES)
            read_at = self.clock.seconds()
            self.hosts.expiries |= {from_uuid(id_): read_at + left for id_, left in cursor.fetchall()}

    def draft(self, number: int) -> Draft:
        rng = self.rng
        is_scheduled = rng.random() < 0.3
        return Draft(
            sender=parse_address("x@alice.example"),
            to=tuple(parse_address(f"r{number}.{one}@example.com") for one in range(rng.choice([1, 1, 1, 3]))),
            subject="s",
            text="t",
            scheduled_for=datetime.fromisoformat(later(seconds=rng.uniform(5, 90))) if is_scheduled else None,
            batch_id=self.batch.id if is_scheduled and rng.random() < 0.5 else None,
            deliver_within=rng.choice([None, *range(30, 120, 15)]),
            stream=rng.choice(["main", "codes"]),
        )

    def act(self) -> None:
        rng = self.rng
        self.clock.shift_rows()
        if rng.random() < 0.15 and not self.hosts.is_calm:
            self.pause()
        if self.resumes and (self.hosts.is_calm or rng.random() < 0.3):
            self.resume_all()
        self.perform(is_killed=rng.random() < 0.05 and not self.hosts.is_calm)
        self.clock.advance(rng.uniform(0, 2000 if self.hosts.is_calm else 30))

    def resume_all(self) -> None:
        for resume in self.resumes:
            resume()
        self.resumes.clear()

    def pause(self) -> None:
        workspace, batch = self.workspace, EmailBatch.objects.get(id=self.batch.id)
        pauses: list[tuple[Callable[[], object], Callable[[], object]]] = [
            (pause_sending, resume_sending),
            (
                lambda: pause_stream(workspace, "codes", reason="Complaints."),
                lambda: resume_stream(workspace, "codes"),
            ),
            (
                lambda: change_workspace(workspace, suspended_at="2026-01-01T00:00:00Z"),
                lambda: change_workspace(workspace, suspended_at=None),
            ),
        ]
        if batch.state == EmailBatch.State.OPEN:
            resume = lambda: resume_batch(EmailBatch.objects.get(id=batch.id), limits=NO_LIMITS)  # noqa: E731
            pauses.append((lambda: pause_batch(batch, limits=NO_LIMITS), resume))
        pause, resume = self.rng.choice(pauses)
        pause()
        self.resumes.append(resume)

    def perform(self, *, is_killed: bool) -> None:
        """Claim, send and record; a worker that is killed records nothing, and another one is started."""
        jobs = self.work.claim(self.rng.randint(1, self.wave)).jobs
        # Also the other recipients of scheduled emails, whose first ones the claim has found.
        while fail_expired():
            pass
        with connection.cursor() as cursor:
            cursor.execute(OVERDUE)
            assert cursor.fetchone() == (0,)
        results = perform_jobs(self.work, jobs)
        self.clock.shift_rows()
        if is_killed:
            self.work = self.start_worker()
        else:
            self.work.record(results)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    for name in ("PROMOTE_EVERY_SECONDS", "EXPIRE_EVERY_SECONDS", "RELEASE_EVERY_SECONDS"):
        monkeypatch.setattr(f"emails.sending.emails_work.{name}", 0)
    return Clock(monkeypatch)


def survive(workspace: Workspace, clock: Clock, *, seed: int, emails: int, wave: int) -> None:
    storm = Storm(workspace, random.Random(seed), clock, wave=wave)
    storm.run(emails)
    assert storm.hosts.late == []
    finals = Counter(
        Event.objects.filter(kind__in=["delivered", "failed"]).values_list("recipient_id", flat=True).iterator()
    )
    rows = Recipient.objects.values_list("id", "state", "reason")
    states = {id_: (state, reason) for id_, state, reason in rows}
    assert {state for state, _ in states.values()} == {"delivered", "failed"}
    assert finals == Counter(states.keys())
    expired = {id_ for id_, (_, reason) in states.items() if reason == "expired"}
    taken = {id_ for id_, times in storm.hosts.taken.items() if times}
    assert (bool(expired), expired & taken) == (True, set())
    assert storm.hosts.dots > len(states) // 2
    assert "recipients.delayed" not in counter_values()


@pytest.mark.parametrize("seed", range(3))
def test_a_small_storm(workspace, clock, seed):
    emails, wave = QUICK
    survive(workspace, clock, seed=seed, emails=emails, wave=wave)


@pytest.mark.long
def test_a_storm_of_100_000_emails(workspace, clock):
    emails, wave = LONG
    survive(workspace, clock, seed=20261201, emails=emails, wave=wave)
