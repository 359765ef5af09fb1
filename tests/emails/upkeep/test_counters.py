"""Whatever happens to emails, in whatever order and at once: the counters are what reconcile computes.

A machine of Hypothesis makes up histories out of the service's own acts. After every step the counters are
compared with the rows by emails.upkeep.reconcile, and analytics and queue/stats with a count in Python.
"""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db import connection, transaction
from django.db.models.functions import Now
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from analytics import counters
from analytics.reconcile import wrong_days
from analytics.services import read_days, read_span
from api.errors import NotFound
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from emails.accept.drafts import BatchDraft, BatchRecipient, Draft
from emails.accept.services import resend_email, send_batch, send_email
from emails.errors import EmailAlreadySent, EmailNotCancellable, EmailNotScheduled
from emails.events.opens_and_clicks import Hit, record_hits
from emails.events.reports import Reported, record_reports
from emails.models import Email, Event, Pending, Recipient
from emails.queue_stats import read_stats, recent
from emails.sending import queue
from emails.sending.outcomes import Result, record
from emails.sending.scheduling import cancel_email, promote_due, reschedule_email
from emails.states import PRECEDENCE, State, sources
from emails.upkeep.reconcile import differences
from emails.upkeep.retention import delete_emails, expired_emails
from lib.email_addresses import parse_address
from lib.ids import to_uuid
from templates_app.services import Content, create_template
from tests.conftest import make_account, make_domain
from workspaces.models import Workspace

OUTCOMES = {
    DeliveryStatus.SENT: DeliveryOutcome(DeliveryStatus.SENT, Reply(250, "2.0.0 ok")),
    DeliveryStatus.DELIVERED: DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "2.0.0 ok")),
    DeliveryStatus.DEFERRED: DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(451, "4.7.1 later"), "temporary"),
    DeliveryStatus.BOUNCED: DeliveryOutcome(DeliveryStatus.BOUNCED, Reply(550, "5.1.1 nobody"), "rejected"),
    DeliveryStatus.FAILED: DeliveryOutcome(DeliveryStatus.FAILED, Reply(0, "too long"), "expired"),
    DeliveryStatus.PARKED: DeliveryOutcome(DeliveryStatus.PARKED, Reply(0, "no room"), "destination_full"),
}
VERDICTS = st.sampled_from(DeliveryStatus)
# Not st.randoms(): what is chosen from differs between runs, so the draws must not depend on it.
CHOICES = st.integers(0, 10_000).map(random.Random)
REFUSALS = (EmailAlreadySent, EmailNotCancellable, EmailNotScheduled, NotFound)
# What is told after the mail has left: the link that was followed, none for the pixel.
LINKS = {State.OPENED: None, State.CLICKED: "https://w.example/"}
REPORTED = {State.BOUNCED: Event.Kind.BOUNCED, State.DELIVERED: Event.Kind.DELIVERED, State.FAILED: Event.Kind.FAILED}
names = count()


class History(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        account = make_account(f"w{next(names)}")
        self.workspace = account.workspace
        make_domain(self.workspace, "w.example")
        content = Content(subject="s", html="<p>{{n}}</p>")
        self.template = create_template(self.workspace, name="t", content=content, alias=None, strict_variables=False)
        self.held: list[queue.Claim] = []
        self.deleted: Counter[str] = Counter()

    def teardown(self) -> None:
        """Keep what is left from being claimed by the next history."""
        Workspace.objects.filter(id=self.workspace.id).update(suspended_at=Now())

    @rule(recipients=st.integers(1, 3), is_scheduled=st.booleans())
    def send(self, recipients, is_scheduled):
        to = tuple(parse_address(f"{number}@example.com") for number in range(recipients))
        moment = datetime.now(UTC) + timedelta(hours=1) if is_scheduled else None
        sender = parse_address("x@w.example")
        draft = Draft(sender=sender, to=to, subject="s", html="<p>", scheduled_for=moment)
        send_email(self.workspace, draft=draft, key=None)

    @rule(recipients=st.integers(1, 4))
    def batch(self, recipients):
        everybody = tuple(BatchRecipient(parse_address(f"{number}@example.com")) for number in range(recipients))
        sender = parse_address("x@w.example")
        draft = BatchDraft(sender=sender, template=self.template.id, recipients=everybody)
        send_batch(self.workspace, batch=draft, key=None)

    @rule(choice=CHOICES)
    def resend(self, choice):
        if email := self.any_email(choice):
            resend_email(self.workspace, email=email, key=None)

    @rule(limit=st.integers(1, 6))
    def claim(self, limit):
        self.held += queue.claim(limit, after=UUID(int=0))

    @rule(verdicts=st.lists(VERDICTS, min_size=1, max_size=6))
    def record(self, verdicts):
        """Results of claims, some of which may be lost by now."""
        results = [Result(held, OUTCOMES[verdict]) for held, verdict in zip(self.held, verdicts, strict=False)]
        record(results)
        self.held = self.held[len(results) :]

    @rule(stage=st.sampled_from([Pending.Stage.WAITING, Pending.Stage.LEASED, Pending.Stage.SCHEDULED]))
    def let_time_pass(self, stage):
        """Leases expire, waits and schedules end; those who come for them are told by promote_due alone."""
        rows = Pending.objects.filter(workspace_id=self.workspace.id, stage=stage)
        if stage == Pending.Stage.SCHEDULED:
            rows.update(since=Now() - timedelta(seconds=1))
            rows = rows.filter(recipient__position=0)
        rows.update(due_at=Now() - timedelta(seconds=1))

    @rule()
    def promote(self):
        promote_due()

    @rule(choice=CHOICES)
    def cancel(self, choice):
        self.attempt(cancel_email, choice)

    @rule(choice=CHOICES)
    def move(self, choice):
        self.attempt(reschedule_email, choice, scheduled_for=datetime.now(UTC) + timedelta(hours=2))

    @rule(choice=CHOICES)
    def send_now(self, choice):
        self.attempt(reschedule_email, choice, scheduled_for=None)

    @rule(choice=CHOICES, state=st.sampled_from(list(LINKS)))
    def hit(self, choice, state):
        if recipient_id := self.any_recipient(choice, state):
            record_hits([Hit(recipient_id, LINKS[state])])

    @rule(choice=CHOICES, state=st.sampled_from(list(REPORTED)))
    def report(self, choice, state):
        """What comes while a worker still holds the mail comes, too."""
        if recipient_id := self.any_recipient(choice, state):
            record_reports([Reported(recipient_id, REPORTED[state], {"message": "5.1.1 nobody"})])

    @rule()
    def fold(self):
        counters.fold()

    @rule(is_suspended=st.booleans())
    def suspend(self, is_suspended):
        Workspace.objects.filter(id=self.workspace.id).update(suspended_at=Now() if is_suspended else None)

    @rule()
    def expire(self):
        gone = Email.objects.filter(finished_at__isnull=False, workspace=self.workspace)
        self.deleted += self.analytics_of(gone)
        for _ in expired_emails(self.workspace.id, timedelta()):
            pass

    @rule(seed=st.integers(0, 10_000))
    def storm(self, seed):
        """Several of everything at the same time, each with a connection of its own."""
        acts = [
            self.work,
            self.work,
            self.late_events,
            self.fold_often,
            self.cancel_all,
            self.accept,
            self.expire_beside,
        ]
        with ThreadPoolExecutor(len(acts)) as pool:
            running = [pool.submit(closing, act, random.Random(seed + number)) for number, act in enumerate(acts)]
        for future in running:
            future.result()

    @invariant()
    def counters_are_what_a_recount_finds(self):
        assert differences(self.workspace.id) == []
        assert wrong_days(self.workspace.id) == []

    @invariant()
    def analytics_are_what_python_counts(self):
        expected = self.analytics_of(Email.objects.filter(workspace=self.workspace)) + self.deleted
        span = read_span(self.workspace, start=None, end=None)
        days = read_days(self.workspace, days=2)
        for volume in (span, *([days[1]] if not days[0].total else [])):
            assert +Counter({"total": volume.total, **volume.reached}) == expected

    @invariant()
    def stats_are_what_python_counts(self):
        recent.clear()
        # In one transaction now() is one moment: a row that is parked for two seconds may be due between two.
        with transaction.atomic():
            stats = read_stats(self.workspace)
            pending = Pending.objects.filter(workspace_id=self.workspace.id)
            active = pending.filter(stage=Pending.Stage.LEASED).count()
            delayed = pending.filter(stage=Pending.Stage.WAITING, due_at__gt=TransactionNow()).count()
            delayed += pending.filter(stage=Pending.Stage.SCHEDULED, since__gt=TransactionNow()).count()
        assert stats.active == active
        if Workspace.objects.get(id=self.workspace.id).is_suspended:
            assert (stats.waiting, stats.delayed, stats.paused) == (0, 0, pending.count() - active)
        else:
            assert (stats.waiting, stats.delayed, stats.paused) == (pending.count() - active - delayed, delayed, 0)

    def any_email(self, choice):
        ids = sorted(Email.objects.filter(workspace=self.workspace).values_list("id", flat=True))
        # Retention may be faster.
        return Email.objects.filter(id=choice.choice(ids)).first() if ids else None

    def any_recipient(self, choice, state):
        recipients = Recipient.objects.filter(email__workspace=self.workspace, state__in=sources(state))
        ids = sorted(recipients.values_list("id", flat=True))
        return choice.choice(ids) if ids else None

    def attempt(self, act, choice, **arguments):
        if email := self.any_email(choice):
            with suppress(*REFUSALS):
                act(email, **arguments)

    def analytics_of(self, emails):
        """Count as the contract says, from the recipients alone."""
        found: Counter[str] = Counter()
        for email in emails.prefetch_related("recipients"):
            recipients = list(email.recipients.all())
            states = {recipient.state for recipient in recipients}
            if next(state for state in PRECEDENCE if state in states) in {State.CANCELLED, State.SCHEDULED}:
                continue
            found["total"] += 1
            has = {name: any(getattr(one, f"{name}_at") for one in recipients) for name in ("opened", "clicked")}
            found["delivered"] += any(one.delivered_at or one.opened_at or one.clicked_at for one in recipients)
            found["bounced"] += any(one.bounced_at for one in recipients)
            found["opened"] += has["opened"] or has["clicked"]
            found["clicked"] += has["clicked"]
        return +found

    def work(self, choice):
        for _ in range(3):
            promote_due()
            held = queue.claim(4, after=UUID(int=0))
            record([Result(one, OUTCOMES[choice.choice(list(DeliveryStatus))]) for one in held])

    def late_events(self, choice):
        for _ in range(3):
            self.hit(choice, choice.choice(list(LINKS)))
            self.report(choice, choice.choice(list(REPORTED)))

    def fold_often(self, choice):
        for _ in range(4):
            counters.fold()

    def cancel_all(self, choice):
        for _ in range(3):
            self.cancel(choice)

    def expire_beside(self, choice):
        """What it deletes is counted while nobody else can change it."""
        with transaction.atomic():
            finished = list(Email.objects.filter(finished_at__isnull=False, workspace=self.workspace))
            list(Recipient.objects.filter(email__in=finished).order_by("id").select_for_update())
            emails = Email.objects.filter(id__in=[email.id for email in finished])
            before = self.analytics_of(emails)
            delete_emails(self.workspace.id, f"{{{','.join(str(to_uuid(email.id)) for email in finished)}}}")
            self.deleted += before - self.analytics_of(emails)

    def accept(self, choice):
        self.send(2, choice.random() < 0.5)
        self.batch(2)


def closing(act, choice):
    try:
        act(choice)
    finally:
        connection.close()


def tell(examples, steps):
    options = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    run_state_machine_as_test(History, settings=options)


@pytest.mark.django_db(transaction=True)
def test_after_any_history_the_counters_are_what_a_recount_finds():
    tell(8, 20)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_after_many_long_histories_the_counters_are_what_a_recount_finds():
    tell(150, 60)
