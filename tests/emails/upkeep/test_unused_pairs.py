"""Deletion of the paces of receivers that are not used any more (docs/decisions/0365)."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from emails import tasks
from emails.models import ReceiverPace
from emails.receivers.changes import pin_rate, suspend_pair
from emails.upkeep import unused_pairs
from emails.upkeep.unused_pairs import delete_unused_pairs
from tests.emails.builders import accept
from tests.emails.pacing.test_paces import hold
from tests.emails.receivers.builders import make_pair

pytestmark = pytest.mark.django_db


def age(**duration):
    ReceiverPace.objects.update(updated_at=F("updated_at") - timedelta(**duration))


def left():
    return set(ReceiverPace.objects.values_list("receiver", flat=True))


def test_deletes_those_without_a_report_for_two_days():
    make_pair("old.example")
    age(hours=47, minutes=59)
    tasks.expire()
    assert left() == {"old.example"}
    age(minutes=2)
    make_pair("new.example")
    tasks.expire()
    assert left() == {"new.example"}


def test_keeps_those_that_entries_wait_for_and_those_of_the_staff(workspace):
    pinned, stopped, waiting, releasing, _ = (
        make_pair(f"{name}.example") for name in ("pinned", "stopped", "waiting", "releasing", "unused")
    )
    accept(workspace)
    hold(waiting.id)
    ReceiverPace.objects.filter(id=waiting.id).update(release_at=None)
    ReceiverPace.objects.filter(id=releasing.id).update(release_at=Now())
    pin_rate(pinned, per_minute=5)
    suspend_pair(stopped)
    age(days=3)
    list(delete_unused_pairs())
    assert left() == {"pinned.example", "stopped.example", "waiting.example", "releasing.example"}


def test_keeps_those_of_new_and_of_listed_addresses_for_a_month():
    for name in ("new", "listed", "unused"):
        make_pair(f"{name}.example")
    ReceiverPace.objects.filter(receiver="new.example").update(began_on="2026-12-01")
    ReceiverPace.objects.filter(receiver="listed.example").update(former_rate=12)
    age(days=29)
    list(delete_unused_pairs())
    assert left() == {"new.example", "listed.example"}
    age(days=1, minutes=1)
    list(delete_unused_pairs())
    assert left() == set()


def test_deletes_in_batches(monkeypatch):
    monkeypatch.setattr(unused_pairs, "BATCH_SIZE", 2)
    monkeypatch.setattr(unused_pairs, "DELETE", unused_pairs.DELETE.replace("LIMIT 1000", "LIMIT 2"))
    for number in range(5):
        make_pair(f"{number}.example")
    age(days=3)
    batches = delete_unused_pairs()
    next(batches)
    assert len(left()) == 3
    assert len(list(batches)) == 2
    assert left() == set()
