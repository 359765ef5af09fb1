"""Caught messages are deleted after the plan's retention period."""

from datetime import timedelta

import pytest
from django.utils import timezone

from core.workspaces.models import Workspace
from interfaces.inbound.inbox import retention
from interfaces.inbound.inbox.models import CaughtMail
from interfaces.inbound.inbox.tasks import expire

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_rests(monkeypatch):
    monkeypatch.setattr("core.workspaces.retention.REST_RATIO", 0.0)


def catch_mail(workspace, *, days, minutes=0):
    received_at = timezone.now() - timedelta(days=days, minutes=minutes)
    return CaughtMail.objects.create(
        workspace=workspace, recipient="a@example.com", source=b"x", received_at=received_at
    )


def test_messages_are_deleted_after_the_retention_period_of_their_plan(alice, bob, monkeypatch):
    monkeypatch.setattr(retention, "BATCH_SIZE", 2)
    Workspace.objects.filter(id=bob.workspace.id).update(plan="free")
    kept = {
        catch_mail(alice.workspace, days=365, minutes=-1),
        catch_mail(bob.workspace, days=7, minutes=-1),
        catch_mail(None, days=7, minutes=-1),
    }
    for _ in range(3):
        catch_mail(alice.workspace, days=365, minutes=1)
        catch_mail(bob.workspace, days=7, minutes=1)
        catch_mail(None, days=7, minutes=1)
    expire()
    assert set(CaughtMail.objects.all()) == kept
