"""The way back to a version before 1.0 moves the progress of the sequencer, and nothing else."""

from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, models
from django.db.models.functions import Now

from core.lib.sql import run
from core.request_log.recording import recorder as request_recorder
from domains.models import Domain, KnownSource
from events.models import Event, FeedEntry
from tests.conftest import Account, Api
from tests.console.provisioning.test_deletion import add_former_event, fill
from tests.emails.builders import deliver_all, send
from tests.events.feed import publish_committed
from tests.events.version_before import read_before, sequence_before
from webhooks.models import WebhookDelivery
from webhooks.services import create_webhook

pytestmark = pytest.mark.django_db

# Values of columns that need one.
SAMPLES: dict[str, Any] = {
    "ArrayField": [], "BigIntegerField": 7, "BinaryField": b"x", "BooleanField": True, "CharField": "x",
    "DateField": Now(), "DateTimeField": Now(), "FloatField": 7.0, "GenericIPAddressField": "192.0.2.1",
    "IntegerField": 7, "JSONField": {},
    "PositiveBigIntegerField": 7, "PositiveIntegerField": 7, "PositiveSmallIntegerField": 7, "SmallIntegerField": 7,
    "TextField": "x",
    "UUIDField": "0192d3a4-0000-7000-8000-000000000000",
}  # fmt: skip


@pytest.fixture
def _filled(api: Api, alice: Account) -> None:
    """Fill every table."""
    call_command("migrate", verbosity=0)
    fill(api, alice)
    request_recorder.flush()
    publish_committed()
    # A row that was copied to the log.
    add_former_event(alice)
    KnownSource.objects.create(domain=Domain.objects.first(), ip="192.0.2.1", label="Shop")
    run("UPDATE workspaces_workspaceevent SET number = 0 RETURNING 1")
    for model in sorted(apps.get_models(include_auto_created=True), key=lambda one: len(foreign_keys(one))):
        if not model._base_manager.exists():
            model._base_manager.create(**sample(model))


def foreign_keys(model: type[models.Model]) -> list[models.ForeignKey[Any, Any]]:
    return [field for field in model._meta.concrete_fields if isinstance(field, models.ForeignKey)]


def sample(model: type[models.Model]) -> dict[str, Any]:
    """Return values for the columns that need one."""
    keys = {field.name: field.related_model._base_manager.first() for field in foreign_keys(model) if not field.null}
    others = {
        field.name: SAMPLES[field.get_internal_type()]
        for field in model._meta.concrete_fields
        if not (field.null or field.is_relation or field.has_default() or field.has_db_default())
        if not isinstance(field, models.AutoField)
    }
    return others | keys


def dump() -> dict[str, list[Any]]:
    """Return the rows of every table as text."""
    return {name: run(f"SELECT t::text FROM {name} t ORDER BY 1") for name in connection.introspection.table_names()}


def prepare_downgrade() -> str:
    output = StringIO()
    call_command("prepare_downgrade", stdout=output)
    return output.getvalue()


def test_nothing_but_the_progress_of_the_sequencers_changes(_filled):
    before = dump()
    assert [name for name, rows in before.items() if not rows] == []
    assert "Start that version now." in prepare_downgrade()
    returned = dump()
    assert {name for name in before if returned[name] != before[name]} == {"events_feedprogress"}
    assert "Nothing changed" in prepare_downgrade()
    assert dump() == returned
    output = StringIO()
    call_command("migrate", stdout=output)
    assert "continues the feed" in output.getvalue()
    assert dump() == before


def test_the_version_before_and_the_next_upgrade_continue_the_feed(_filled, api: Api, alice: Account):
    prepare_downgrade()
    send(api)
    sequence_before()
    found = [id_ for id_, _, _ in read_before(alice.workspace.id)]
    # It does not find events on no timeline that this version has recorded.
    assert sorted(found) == sorted(Event.objects.exclude(email=None).values_list("id", flat=True))
    call_command("migrate", verbosity=0)
    send(api)
    publish_committed()
    assert FeedEntry.objects.count() == Event.objects.count()


def test_events_that_wait_are_published_before(api: Api, alice: Account):
    call_command("migrate", verbosity=0)
    create_webhook(alice.workspace, url="http://127.0.0.1:9/hook", events=["delivered", "sent"])
    publish_committed()
    send(api)
    deliver_all()
    prepare_downgrade()
    assert FeedEntry.objects.count() == Event.objects.count()
    assert {*WebhookDelivery.objects.values_list("kind", flat=True)} == {"sent", "delivered"}
