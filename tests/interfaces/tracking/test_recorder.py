"""The hit buffer: batches, an unreachable database, and the capacity limit."""

import logging
import time
from threading import Thread

import pytest
from django.db import DataError, OperationalError, connection

from core.lib.ids import new_id
from core.lib.worker import write_buffer
from core.lib.worker.write_buffer import WriteBuffer
from emails.feedback.opens_and_clicks import Hit
from interfaces.tracking import recorder as module
from interfaces.tracking.recorder import BATCH_SIZE, CAPACITY, HitRecorder
from tests.interfaces.tracking.conftest import Reader, make_reader
from tests.stack.stack import wait_for

# Tests start no threads (tests/conftest.py).
START = WriteBuffer._start


@pytest.fixture
def written(monkeypatch) -> list[list[Hit]]:
    """The recorded batches; nothing is written to the database."""
    batches: list[list[Hit]] = []
    monkeypatch.setattr(module, "record_hits", lambda hits: batches.append(list(hits)))
    return batches


def raise_unreachable(_: list[Hit]) -> None:
    raise OperationalError("the server is not there")


def test_hits_are_recorded_in_batches_and_in_order(written):
    recorder = HitRecorder()
    hits = [Hit(new_id()) for _ in range(2 * BATCH_SIZE + 1)]
    for hit in hits:
        recorder.add(hit)
    assert recorder.flush()
    assert [len(batch) for batch in written] == [BATCH_SIZE, BATCH_SIZE, 1]
    assert [hit for batch in written for hit in batch] == hits
    assert recorder.flush()
    assert len(written) == 3


def test_hits_wait_while_the_database_is_unreachable(monkeypatch, written):
    recorder, hits = HitRecorder(), [Hit(new_id()) for _ in range(3)]
    for hit in hits:
        recorder.add(hit)
    with monkeypatch.context() as patch:
        patch.setattr(module, "record_hits", raise_unreachable)
        assert not recorder.flush()
    later = Hit(new_id())
    recorder.add(later)
    assert recorder.flush()
    assert written == [[*hits, later]]


def test_too_many_hits_are_dropped_and_counted(monkeypatch, written, caplog):
    recorder = HitRecorder()
    for _ in range(CAPACITY + 7):
        recorder.add(Hit("x"))
    with caplog.at_level(logging.ERROR, "postrider.tracking"):
        recorder.flush()
    assert sum(map(len, written)) == CAPACITY
    assert [(record.message, record.data) for record in caplog.records] == [("hits dropped", {"count": 7})]


@pytest.mark.parametrize("error", [DataError("no such thing"), KeyError("internal error")])
def test_only_the_hit_that_fails_is_lost(monkeypatch, caplog, error):
    good, bad, written = Hit(new_id()), Hit(new_id()), []

    def record(hits: list[Hit]) -> None:
        if bad in hits:
            raise error
        written.extend(hits)

    monkeypatch.setattr(module, "record_hits", record)
    recorder = HitRecorder()
    for hit in (good, bad, good):
        recorder.add(hit)
    assert recorder.flush()
    assert written == [good, good]
    assert [record.message for record in caplog.records if record.name == "postrider.tracking"] == [
        "a hit could not be recorded"
    ]


def test_at_process_exit_buffered_hits_are_recorded_or_counted(monkeypatch, written, caplog):
    recorder = HitRecorder()
    recorder.add(Hit(new_id()))
    recorder._finish()
    assert len(written) == 1
    monkeypatch.setattr(module, "record_hits", raise_unreachable)
    recorder.add(Hit(new_id()))
    recorder._finish()
    assert caplog.records[-1].data == {"count": 1}


def test_adding_a_hit_does_not_block(written):
    recorder = HitRecorder()
    started = time.perf_counter()
    for _ in range(1000):
        recorder.add(Hit("x"))
    assert time.perf_counter() - started < 0.1


@pytest.mark.django_db(transaction=True)
def test_the_thread_records_hits_soon(alice, monkeypatch):
    monkeypatch.setattr(WriteBuffer, "_start", START)
    threads: list[Thread] = []
    start = Thread.start
    monkeypatch.setattr(Thread, "start", lambda thread: (threads.append(thread), start(thread))[1])
    monkeypatch.setattr(write_buffer.atexit, "register", lambda _: None)
    monkeypatch.setattr(write_buffer, "IDLE_SECONDS", 0.1)
    reader: Reader = make_reader(alice.workspace)
    recorder = HitRecorder()
    before = other_connections()
    for _ in range(2):
        recorder.add(Hit(reader.recipient.id))
        is_idle = lambda: not recorder._rows and not recorder._flush_lock.locked()  # noqa: E731
        wait_for(is_idle, seconds=10, what="the hit is recorded")
    assert reader.kinds() == ["opened", "opened"]
    assert [thread.name for thread in threads] == ["hits"]
    # The idle thread closes its connection; an open one would prevent dropping the test database.
    wait_for(lambda: other_connections() <= before, seconds=10, what="the connection is closed")


def other_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])
