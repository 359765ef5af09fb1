"""Notices of new suppressions, through the real Redis."""

import json
import queue
import threading
from collections.abc import Iterator

import pytest

from config.logs import JsonFormatter
from suppressions import notices
from suppressions.notices import SuppressionNotice, publish_notice, start_listening
from tests.conftest import Api
from tests.stack.stack import wait_for
from tools.embedded.servers.redis import start_throw_away

pytestmark = pytest.mark.django_db


@pytest.fixture
def received(settings, monkeypatch) -> Iterator["queue.Queue[SuppressionNotice]"]:
    """Return the notices that a worker receives."""
    server = start_throw_away()
    settings.REDIS_URL = server.url
    stopped = threading.Event()
    monkeypatch.setattr(notices, "is_stopping", stopped.is_set)
    found: queue.Queue[SuppressionNotice] = queue.Queue()
    start_listening(found.put)
    wait_for(lambda: _publish_until_received(found), seconds=20, what="the worker listens")
    yield found
    stopped.set()
    publish_notice("ws_stop", [])
    server.stop()


def covers(notice: SuppressionNotice, workspace_id: str, address: str) -> bool:
    return notice.covers(workspace_id, address, stream="main", ignores_unsubscribes=False)


def _publish_until_received(found: "queue.Queue[SuppressionNotice]") -> bool:
    publish_notice("ws_start", [])
    try:
        found.get(timeout=0.1)
    except queue.Empty:
        return False
    while not found.empty():
        found.get()
    return True


def test_the_log_gives_the_reason_for_a_lost_redis(settings, monkeypatch, caplog):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    stops = iter([False, True])
    monkeypatch.setattr(notices, "is_stopping", lambda: next(stops))
    monkeypatch.setattr(notices, "RECONNECT_SECONDS", 0)
    notices._listen(print)
    (record,) = caplog.records
    assert "refused" in json.loads(JsonFormatter().format(record))["error"]


def test_a_new_suppression_reaches_the_workers(api: Api, alice, received, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        api.post("/suppressions", {"emails": ["Ada@Example.com", "bob@example.com"]})
    notice = received.get(timeout=10)
    assert covers(notice, alice.workspace.id, "ada@example.com")
    assert covers(notice, alice.workspace.id, "BOB@example.com")
    assert not covers(notice, alice.workspace.id, "carol@example.com")
    assert not covers(notice, "ws_other", "ada@example.com")
    assert "ada" not in str(notice).lower()


def test_an_address_suppressed_already_causes_no_notice(api: Api, django_capture_on_commit_callbacks):
    api.post("/suppressions", {"email": "ada@example.com"})
    with django_capture_on_commit_callbacks() as callbacks:
        api.post("/suppressions", {"email": "ada@example.com"})
    assert callbacks == []
