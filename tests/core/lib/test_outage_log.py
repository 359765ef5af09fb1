"""An outage is a few lines in the log, however many calls fail."""

import logging

import pytest

from core.lib import outage_log, redis_client
from core.lib.outage_log import OutageLog, RepeatFilter

URL = "redis://127.0.0.1:1/0"


@pytest.fixture
def outage(caplog):
    return OutageLog(logging.getLogger("postrider.test"), down="down", up="up")


def messages(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_an_outage_is_logged_at_its_start_and_at_its_end(outage, caplog):
    outage.record_success()
    for _ in range(3):
        outage.record_failure(OSError("refused\nagain"))
    outage.record_success()
    outage.record_success()
    assert messages(caplog) == ["down", "up"]
    assert [record.data for record in caplog.records] == [{"error": "OSError: refused", "failures": 1}, {"failures": 3}]


def test_a_long_outage_is_logged_rarely_with_the_number_of_failures(outage, caplog, monkeypatch):
    monkeypatch.setattr(outage_log, "INTERVAL_SECONDS", 0)
    for _ in range(2):
        outage.record_failure(OSError("refused"), has_traceback=True)
    assert [(record.data["failures"], bool(record.exc_info)) for record in caplog.records] == [(1, True), (2, False)]


def test_redis_that_does_not_respond_is_one_line(caplog, monkeypatch):
    monkeypatch.setattr(redis_client, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(redis_client, "outage", OutageLog(redis_client.log, down="down", up="up"))
    for _ in range(5):
        assert redis_client.ask_redis(URL, lambda client: client.ping()) is None
    assert len(caplog.records) == 1
    redis_client.outage.record_success()
    redis_client._paused_until.clear()


def test_a_repeated_record_of_a_library_is_dropped_for_a_minute(caplog, monkeypatch):
    log = logging.getLogger("library")
    repeats = RepeatFilter()
    log.addFilter(repeats)
    for number in range(3):
        log.error("cannot connect to %s", number)
    log.error("the connection is lost")
    monkeypatch.setattr(outage_log, "INTERVAL_SECONDS", 0)
    log.error("cannot connect to %s", 3)
    log.removeFilter(repeats)
    assert messages(caplog) == ["cannot connect to 0", "the connection is lost", "cannot connect to 3"]
