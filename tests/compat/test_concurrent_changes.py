"""Requests that change what they read: each sees the changes of those before it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from tests.compat.conftest import Dialect
from tests.stack.stack import wait_for
from webhooks.models import Webhook
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)

URL = "https://hooks.example.com/events"
BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def blocked_connections() -> int:
    with connection.cursor() as cursor:
        # Within a transaction, the view keeps its first snapshot.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(BLOCKED)
        return int(cursor.fetchone()[0])


def send_together(workspace: Workspace, *requests: Callable[[], Any]) -> list[int]:
    """Send requests that all begin before the first one can change anything; return their statuses."""

    def send(request: Callable[[], Any]) -> int:
        try:
            with connection.cursor() as cursor:
                # The requests wait until all have begun, however long that takes.
                cursor.execute("SET lock_timeout = 0; SET statement_timeout = 0")
            return int(request().status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(requests)) as pool:
        with transaction.atomic():
            Workspace.objects.select_for_update().get(id=workspace.id)
            sent = [pool.submit(send, request) for request in requests]
            wait_for(lambda: blocked_connections() == len(requests), seconds=60, what="all requests wait")
        return [one.result(timeout=60) for one in sent]


def test_two_first_changes_of_sendgrids_settings_create_one_endpoint(key, alice):
    def change(**settings: bool) -> Callable[[], Any]:
        body = {"enabled": True, "url": URL, **settings}
        return lambda: Dialect("sendgrid", key).call("PATCH", "/v3/user/webhooks/event/settings", body)

    assert send_together(alice.workspace, change(open=True), change(click=True)) == [200, 200]
    assert set(Webhook.objects.get().events) == {"opened", "clicked"}


def test_two_changes_of_a_postmark_webhook_keep_the_triggers_of_both(key, alice):
    def triggers(name: str) -> dict[str, Any]:
        return {"Url": URL, "Triggers": {name: {"Enabled": True}}}

    number = Dialect("postmark", key).post("/webhooks", triggers("Delivery")).json()["ID"]

    def change(name: str) -> Callable[[], Any]:
        return lambda: Dialect("postmark", key).call("PUT", f"/webhooks/{number}", triggers(name))

    assert send_together(alice.workspace, change("Open"), change("Click")) == [200, 200]
    assert set(Webhook.objects.get().events) == {"delivered", "opened", "clicked"}
