"""Counters of messages that hosts accepted, by sending domain, day and mail organization."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from core.counters.acceptances import AcceptedGroup, acceptance_changes, read_accepted
from core.counters.counters import add
from core.counters.models import CounterDelta
from core.delivery.recipients import Diversion
from tests.emails.builders import BOUNCED, LATER, OK, SENT, accept, deliver, fold, make_ready
from tests.rows import each

pytestmark = pytest.mark.django_db


def today() -> date:
    return datetime.now(UTC).date()


def counts(workspace, *, domain=""):
    name = domain or f"{workspace.name}.example"
    read = read_accepted(workspace.id, domain=name, first=today(), end=today() + timedelta(days=1))
    return {organization: count for (_, organization), count in read.items()}


@each(("outcome", "organization"), [
    (replace(OK, receiver="google"), "google"), (replace(SENT, receiver="acme.example"), "acme.example"),
    # A relay: the domain of the mailbox.
    (OK, "example.com"),
])  # fmt: skip
def test_an_accepted_message_counts_for_the_organization_of_its_mail_host(workspace, outcome, organization):
    accept(workspace, "ada@mail.example.com")
    deliver(outcome)
    assert counts(workspace) == {organization: 1}
    fold()
    assert counts(workspace) == {organization: 1}
    assert counts(workspace, domain="other.example") == {}


def test_each_recipient_has_a_message_and_they_are_counted_in_one_delta(workspace):
    accept(workspace, "ada@example.com", "bob@example.com", count=2)
    deliver(*[replace(OK, receiver="google")] * 4)
    assert counts(workspace) == {"google": 4}
    assert CounterDelta.objects.filter(key="accepted.google").count() == 1


@each("outcome", [LATER, BOUNCED, replace(OK, diversion=Diversion.CAPTURED)])
def test_a_message_that_no_host_accepted_does_not_count(workspace, outcome):
    accept(workspace)
    deliver(outcome)
    assert counts(workspace) == {}


def test_a_deferred_message_counts_once(workspace):
    accept(workspace)
    deliver(replace(LATER, receiver="google"))
    make_ready()
    deliver(OK)
    assert counts(workspace) == {"google": 1}


def test_simulated_recipients_do_not_count(workspace, settings):
    accept(workspace, f"delivered@{settings.SIMULATOR_DOMAIN}")
    deliver(OK)
    assert counts(workspace) == {}


@each(("organization", "counted"), [("a" * 70, "a" * 70), ("a" * 71, "other")])
def test_names_that_are_too_long_for_a_key_are_counted_together(workspace, organization, counted):
    group = AcceptedGroup(workspace.id, f"{workspace.name}.example", organization)
    add(acceptance_changes({group: 3}, at=datetime.now(UTC)))
    assert counts(workspace) == {counted: 3}


def test_the_days_are_those_of_utc(workspace):
    first = datetime(2026, 11, 20, tzinfo=UTC)
    group = AcceptedGroup(workspace.id, "example.com", "google")
    times = [first - timedelta(microseconds=1), first, first + timedelta(hours=23), first + timedelta(days=1)]
    for time in times:
        add(acceptance_changes({group: 1}, at=time))
    fold()
    for time in times:
        add(acceptance_changes({group: 10}, at=time))
    read = read_accepted(workspace.id, domain="example.com", first=first.date(), end=first.date() + timedelta(days=1))
    assert read == {(first.date(), "google"): 22}
