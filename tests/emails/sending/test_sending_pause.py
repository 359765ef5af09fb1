"""A held service accepts and does not send; a restored copy starts so."""

from uuid import UUID

import pytest
from django.core.management import call_command

from config import health
from emails.models import Pending
from emails.sending import queue
from emails.sending.sending_pause import is_held
from tests.conftest import mail
from tests.emails.sending.test_queue import accept

pytestmark = pytest.mark.django_db


def claim():
    return queue.claim(10, after=UUID(int=0))


def test_what_is_held_is_not_claimed_until_it_is_released(api, alice):
    accept(alice.workspace, "ada@example.com")
    call_command("hold")
    assert is_held()
    assert claim() == []
    call_command("release")
    assert not is_held()
    assert len(claim()) == 1


def test_holding_and_releasing_twice_changes_nothing(api, alice):
    for command in ("hold", "hold", "release", "release"):
        call_command(command)
    assert not is_held()


def test_a_held_service_accepts_and_cancels(api):
    call_command("hold")
    assert api.post("/emails/send", mail()).status_code == 202
    later = api.post("/emails/send", mail(scheduledFor="2026-12-01T00:00:00Z")).json()
    assert api.delete(f"/emails/{later['id']}").status_code == 200


def test_readiness_says_that_it_is_held(api, alice, settings):
    settings.READY_MAX_DELAY = 10
    accept(alice.workspace, "ada@example.com")
    call_command("hold")
    assert health.nobody_sends() is None
    Pending.objects.update(due_at="2020-01-01T00:00:00Z")
    assert "manage.py release" in (health.nobody_sends() or "")
