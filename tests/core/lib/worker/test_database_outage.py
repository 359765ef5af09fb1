"""Records of an outage of the database, by whatever code, are one line for each cause."""

import logging

import psycopg
import pytest
from django.db import DataError, InterfaceError, OperationalError

from config.logs import ExceptionFilter
from core.lib import outage_log
from core.lib.worker.database_outage import OutageFilter, database_outage


@pytest.fixture
def library(caplog):
    """A logger whose handler has the filter, as the one of the settings."""
    caplog.handler.addFilter(outages := OutageFilter())
    yield logging.getLogger("library")
    caplog.handler.removeFilter(outages)


def lines(caplog) -> list[tuple[str, str, bool]]:
    return [(record.name, record.getMessage(), bool(record.exc_info)) for record in caplog.records]


def log_error(library, error, cause=None):
    try:
        raise error from cause
    except type(error):
        library.exception("a task failed")


DOWN = ("postrider.database", "the database does not respond")


def test_records_of_an_outage_are_one_line_with_the_first_traceback(library, caplog):
    for _ in range(3):
        log_error(library, OperationalError("refused"))
    log_error(library, InterfaceError("closed"))
    assert lines(caplog) == [(*DOWN, True), (*DOWN, True)]
    assert [record.data["error"] for record in caplog.records] == [
        "OperationalError: refused",
        "InterfaceError: closed",
    ]


def test_causes_are_told_apart(library, caplog):
    for cause in (psycopg.errors.AdminShutdown(), psycopg.OperationalError(), psycopg.errors.AdminShutdown()):
        log_error(library, OperationalError(), cause)
    assert len(caplog.records) == 2


def test_other_errors_and_conflicts_pass(library, caplog):
    log_error(library, DataError())
    log_error(library, OperationalError("deadlock"), psycopg.errors.DeadlockDetected())
    library.error("no exception")
    assert [name for name, *_ in lines(caplog)] == ["library"] * 3


def test_a_database_that_fails_now_and_then_is_a_line_a_minute(caplog, monkeypatch):
    for _ in range(5):
        database_outage.record_failure(OperationalError())
        database_outage.record_success()
    assert [message for _, message, _ in lines(caplog)] == [DOWN[1], "the database responds again"]
    monkeypatch.setattr(outage_log, "INTERVAL_SECONDS", 0)
    database_outage.record_failure(OperationalError())
    assert caplog.records[-1].data["failures"] == 5


@pytest.mark.parametrize(("error", "is_logged"), [(None, False), (ValueError(), True)])
def test_a_response_without_an_exception_is_no_error(error, is_logged):
    info = (type(error), error, None) if error else None
    record = logging.LogRecord("django.request", logging.ERROR, "", 0, "Not Implemented: %s", ("/x",), info)
    assert ExceptionFilter().filter(record) is is_logged
