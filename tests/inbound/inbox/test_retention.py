"""Caught mail goes with the plan's days."""

from datetime import timedelta

import pytest
from django.utils import timezone

from inbound.inbox import retention
from inbound.inbox.models import CaughtMail
from inbound.inbox.tasks import expire
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_rests(monkeypatch):
    monkeypatch.setattr("workspaces.retention.REST", 0.0)


def caught(workspace, *, days, minutes=0):
    moment = timezone.now() - timedelta(days=days, minutes=minutes)
    return CaughtMail.objects.create(workspace=workspace, recipient="a@example.com", source=b"x", received_at=moment)


def test_it_goes_when_its_plans_days_have_passed(alice, bob, monkeypatch):
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    Workspace.objects.filter(id=bob.workspace.id).update(plan="free")
    kept = {
        caught(alice.workspace, days=365, minutes=-1),
        caught(bob.workspace, days=7, minutes=-1),
        caught(None, days=7, minutes=-1),
    }
    for _ in range(3):
        caught(alice.workspace, days=365, minutes=1)
        caught(bob.workspace, days=7, minutes=1)
        caught(None, days=7, minutes=1)
    expire()
    assert set(CaughtMail.objects.all()) == kept
