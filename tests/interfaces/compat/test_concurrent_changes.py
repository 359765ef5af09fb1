"""Requests that change what they read: each sees the changes of those before it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction

from core.workspaces.models import Workspace
from templates_app.models import Template
from tests.core.lib.worker.outages import blocked_connections
from tests.interfaces.compat.conftest import Dialect
from tests.stack.stack import wait_for
from webhooks.models import Webhook

pytestmark = pytest.mark.django_db(transaction=True)

URL = "https://hooks.example.com/events"


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


def test_two_changes_of_a_resend_template_with_variables_keep_both(key, alice):
    content = {"subject": "Hello {{{NAME}}}", "html": "<p>Old</p>"}
    template = Dialect("resend", key).post("/templates", {"name": "Receipt", **content}).json()["id"]

    def change(**fields: str) -> Callable[[], Any]:
        body = {**fields, "variables": [{"key": "NAME", "type": "string", "fallback_value": "you"}]}
        return lambda: Dialect("resend", key).call("PATCH", f"/templates/{template}", body)

    new = {"subject": "Bye {{{NAME}}}", "html": "<p>{{{NAME}}}</p>"}
    changes = [change(**{name: text}) for name, text in new.items()]
    assert send_together(alice.workspace, *changes) == [200, 200]
    version = Template.objects.get().version
    assert (version.subject, version.html) == ('Bye {{{NAME|"you"}}}', '<p>{{{NAME|"you"}}}</p>')


def test_two_changes_of_a_template_keep_both(api, alice):
    template = api.post("/templates", {"name": "Receipt", "subject": "Old", "htmlContent": "<p>Old</p>"}).json()["id"]
    changes = [
        partial(api.patch, f"/templates/{template}", change) for change in ({"subject": "New"}, {"htmlContent": "new"})
    ]
    assert send_together(alice.workspace, *changes) == [200, 200]
    version = Template.objects.get().version
    assert (version.subject, version.html) == ("New", "new")


def test_a_change_of_a_template_that_is_deleted_meanwhile_is_404(api, alice):
    template = api.post("/templates", {"name": "Receipt", "subject": "Old", "htmlContent": "<p>Old</p>"}).json()["id"]
    path = f"/templates/{template}"
    statuses = send_together(alice.workspace, lambda: api.delete(path), lambda: api.patch(path, {"subject": "New"}))
    assert statuses in ([200, 404], [200, 200])
