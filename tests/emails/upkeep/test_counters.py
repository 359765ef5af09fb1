"""Counters after random histories: they always match reconcile, in any order and under concurrency.

A Hypothesis state machine generates histories from the functions of the service. After every step
emails.upkeep.reconcile compares the counters with the rows, and analytics and queue/stats are compared with a count
in Python.
"""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db import transaction
from django.db.models.functions import Now
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from analytics.services import read_days, read_range
from core.api.errors import NotFound
from core.counters import counters
from core.counters.reconcile import find_wrong_days
from core.delivery.bounces.replies import DeliveryStatus
from core.lib.email_addresses import parse_address
from core.lib.ids import to_uuid
from core.lib.worker.stages import Stage
from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.models import Workspace
from emails.accept.drafts import BulkDraft, BulkRecipientDraft, Draft
from emails.accept.services import resend_email, send_bulk, send_email
from emails.errors import EmailAlreadySent, EmailNotCancellable, EmailNotScheduled
from emails.feedback.opens_and_clicks import Hit, record_hits
from emails.feedback.reports import ReportedEvent, record_reports
from emails.models import Email, QueueEntry, Recipient
from emails.queue_stats import read_queue_stats, stats_cache
from emails.sending import queue
from emails.sending.outcomes import SendResult, record_results
from emails.sending.scheduling import cancel_email, promote_due, reschedule_email
from emails.states import TRANSITIONS, EmailStatus
from emails.upkeep.reconcile import find_differences
from emails.upkeep.retention import delete_emails, delete_expired_emails
from events.kinds import EventKind
from templates_app.content import TemplateContent
from templates_app.services import create_template
from tests.conftest import make_account, make_domain
from tests.emails.builders import BOUNCED, FAILED, LATER, OK, PARKED, SENT, claim_entries
from tests.threads import own_connection

OUTCOMES = {outcome.status: outcome for outcome in (OK, SENT, LATER, BOUNCED, FAILED, PARKED)}
VERDICTS = st.sampled_from(DeliveryStatus)
# Not st.randoms(): the candidates differ between runs, and the draws must not depend on them.
CHOICES = st.integers(0, 10_000).map(random.Random)
REFUSALS = (EmailAlreadySent, EmailNotCancellable, EmailNotScheduled, NotFound)
# Events after sending: the clicked link, None for the pixel.
LINKS = {EmailStatus.OPENED: None, EmailStatus.CLICKED: "https://w.example/"}
REPORTED = {
    EmailStatus.BOUNCED: EventKind.BOUNCED,
    EmailStatus.DELIVERED: EventKind.DELIVERED,
    EmailStatus.FAILED: EventKind.FAILED,
}
names = count()


class History(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        account = make_account(f"w{next(names)}")
        self.workspace = account.workspace
        make_domain(self.workspace, "w.example")
        content = TemplateContent(subject="s", html="<p>{{n}}</p>")
        self.template = create_template(self.workspace, name="t", content=content, alias=None, strict_variables=False)
        self.email_claims: list[queue.EmailClaim] = []
        self.deleted: Counter[str] = Counter()

    def teardown(self) -> None:
        """Suspend the workspace, so that the next history does not claim its entries."""
        Workspace.objects.filter(id=self.workspace.id).update(suspended_at=Now())

    @rule(recipients=st.integers(1, 3), is_scheduled=st.booleans())
    def send(self, recipients, is_scheduled):
        to = tuple(parse_address(f"{number}@example.com") for number in range(recipients))
        scheduled_for = datetime.now(UTC) + timedelta(hours=1) if is_scheduled else None
        sender = parse_address("x@w.example")
        draft = Draft(sender=sender, to=to, subject="s", html="<p>", scheduled_for=scheduled_for)
        send_email(self.workspace, draft=draft, key=None, limits=NO_LIMITS)

    @rule(recipients=st.integers(1, 4))
    def batch(self, recipients):
        recipient_drafts = tuple(
            BulkRecipientDraft(parse_address(f"{number}@example.com")) for number in range(recipients)
        )
        sender = parse_address("x@w.example")
        draft = BulkDraft(sender=sender, template=self.template.id, recipients=recipient_drafts)
        send_bulk(self.workspace, draft=draft, key=None, limits=NO_LIMITS)

    @rule(choice=CHOICES)
    def resend(self, choice):
        if email := self.any_email(choice):
            resend_email(self.workspace, email=email, key=None, limits=NO_LIMITS)

    @rule(limit=st.integers(1, 6))
    def claim(self, limit):
        self.email_claims += claim_entries(limit)

    @rule(verdicts=st.lists(VERDICTS, min_size=1, max_size=6))
    def record(self, verdicts):
        """Record results of claims, some of which may have expired."""
        results = [
            SendResult(email_claim, OUTCOMES[verdict])
            for email_claim, verdict in zip(self.email_claims, verdicts, strict=False)
        ]
        record_results(results)
        self.email_claims = self.email_claims[len(results) :]

    @rule(stage=st.sampled_from([Stage.WAITING, Stage.LEASED, Stage.SCHEDULED]))
    def let_time_pass(self, stage):
        """Let leases expire, and waits and schedules end; only promote_due acts on them."""
        rows = QueueEntry.objects.filter(workspace_id=self.workspace.id, stage=stage)
        if stage == Stage.SCHEDULED:
            rows.update(since=Now() - timedelta(seconds=1))
            rows = rows.filter(recipient__position=0)
        rows.update(due_at=Now() - timedelta(seconds=1))

    @rule()
    def promote(self):
        promote_due()

    @rule(choice=CHOICES)
    def cancel(self, choice):
        self.attempt(cancel_email, choice, limits=NO_LIMITS)

    @rule(choice=CHOICES)
    def move(self, choice):
        later = datetime.now(UTC) + timedelta(hours=2)
        self.attempt(reschedule_email, choice, scheduled_for=later, limits=NO_LIMITS)

    @rule(choice=CHOICES)
    def send_now(self, choice):
        self.attempt(reschedule_email, choice, scheduled_for=None, limits=NO_LIMITS)

    @rule(choice=CHOICES, state=st.sampled_from(list(LINKS)))
    def hit(self, choice, state):
        if recipient_id := self.any_recipient(choice, state):
            record_hits([Hit(recipient_id, LINKS[state])])

    @rule(choice=CHOICES, state=st.sampled_from(list(REPORTED)))
    def report(self, choice, state):
        """Record a report, possibly while a worker has claimed the recipient."""
        if recipient_id := self.any_recipient(choice, state):
            record_reports([ReportedEvent(recipient_id, REPORTED[state], {"message": "5.1.1 nobody"})])

    @rule()
    def fold(self):
        counters.fold()

    @rule(is_suspended=st.booleans())
    def suspend(self, is_suspended):
        Workspace.objects.filter(id=self.workspace.id).update(suspended_at=Now() if is_suspended else None)

    @rule()
    def expire(self):
        expired = Email.objects.filter(finished_at__isnull=False, workspace=self.workspace)
        self.deleted += self.analytics_of(expired)
        for _ in delete_expired_emails(self.workspace.id, timedelta()):
            pass

    @rule(seed=st.integers(0, 10_000))
    def concurrent_actions(self, seed):
        """Run several of all actions concurrently, each on a separate connection."""
        actions = [
            self.work, self.work, self.report_late_events, self.fold_often, self.cancel_all, self.accept,
            self.delete_finished,
        ]  # fmt: skip
        with ThreadPoolExecutor(len(actions)) as pool:
            running = [
                pool.submit(own_connection(action), random.Random(seed + number))
                for number, action in enumerate(actions)
            ]
        for future in running:
            future.result()

    @invariant()
    def counters_match_a_recount(self):
        assert find_differences(self.workspace.id) == []
        assert find_wrong_days(self.workspace.id) == []

    @invariant()
    def analytics_match_a_count_in_python(self):
        expected = self.analytics_of(Email.objects.filter(workspace=self.workspace)) + self.deleted
        total_range = read_range(self.workspace, start=None, end=None)
        days = read_days(self.workspace, days=2)
        for volume in (total_range, *([days[1]] if not days[0].total else [])):
            assert +Counter({"total": volume.total, **volume.reached}) == expected

    @invariant()
    def stats_match_a_count_in_python(self):
        stats_cache.clear()
        # now() is constant in a transaction; otherwise an entry parked for two seconds might become due in between.
        with transaction.atomic():
            stats = read_queue_stats(self.workspace)
            pending = QueueEntry.objects.filter(workspace_id=self.workspace.id)
            active = pending.filter(stage=Stage.LEASED).count()
            delayed = pending.filter(stage=Stage.WAITING, due_at__gt=TransactionNow()).count()
            delayed += pending.filter(stage=Stage.SCHEDULED, since__gt=TransactionNow()).count()
        assert stats.active == active
        if Workspace.objects.get(id=self.workspace.id).is_suspended:
            assert (stats.waiting, stats.delayed, stats.paused) == (0, 0, pending.count() - active)
        else:
            assert (stats.waiting, stats.delayed, stats.paused) == (pending.count() - active - delayed, delayed, 0)

    def any_email(self, choice):
        ids = sorted(Email.objects.filter(workspace=self.workspace).values_list("id", flat=True))
        # Retention may have deleted it.
        return Email.objects.filter(id=choice.choice(ids)).first() if ids else None

    def any_recipient(self, choice, state):
        recipients = Recipient.objects.filter(email__workspace=self.workspace, state__in=TRANSITIONS[state].sources)
        ids = sorted(recipients.values_list("id", flat=True))
        return choice.choice(ids) if ids else None

    def attempt(self, action, choice, **arguments):
        if email := self.any_email(choice):
            with suppress(*REFUSALS):
                action(email, **arguments)

    def analytics_of(self, emails):
        """Count as specified, from the recipients only."""
        counts: Counter[str] = Counter()
        for email in emails.prefetch_related("recipients"):
            recipients = list(email.recipients.all())
            states = {recipient.state for recipient in recipients}
            if next(state for state in TRANSITIONS if state in states) in {
                EmailStatus.CANCELLED,
                EmailStatus.SCHEDULED,
            }:
                continue
            counts["total"] += 1
            has = {name: any(getattr(one, f"{name}_at") for one in recipients) for name in ("opened", "clicked")}
            counts["delivered"] += any(one.delivered_at or one.opened_at or one.clicked_at for one in recipients)
            counts["bounced"] += any(one.bounced_at for one in recipients)
            counts["opened"] += has["opened"] or has["clicked"]
            counts["clicked"] += has["clicked"]
        return +counts

    def work(self, choice):
        for _ in range(3):
            promote_due()
            email_claims = claim_entries(4)
            record_results([SendResult(one, OUTCOMES[choice.choice(list(OUTCOMES))]) for one in email_claims])

    def report_late_events(self, choice):
        for _ in range(3):
            self.hit(choice, choice.choice(list(LINKS)))
            self.report(choice, choice.choice(list(REPORTED)))

    def fold_often(self, choice):
        for _ in range(4):
            counters.fold()

    def cancel_all(self, choice):
        for _ in range(3):
            self.cancel(choice)

    def delete_finished(self, choice):
        """Delete finished emails, and count them while they are locked."""
        with transaction.atomic():
            finished = list(Email.objects.filter(finished_at__isnull=False, workspace=self.workspace))
            list(Recipient.objects.filter(email__in=finished).order_by("id").select_for_update())
            emails = Email.objects.filter(id__in=[email.id for email in finished])
            before = self.analytics_of(emails)
            delete_emails(self.workspace.id, [to_uuid(email.id) for email in finished])
            self.deleted += before - self.analytics_of(emails)

    def accept(self, choice):
        self.send(2, choice.random() < 0.5)
        self.batch(2)


def run_histories(examples, steps):
    options = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    run_state_machine_as_test(History, settings=options)


@pytest.mark.django_db(transaction=True)
def test_the_counters_match_a_recount_after_any_history():
    run_histories(8, 20)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_the_counters_match_a_recount_after_many_long_histories():
    run_histories(60, 60)
