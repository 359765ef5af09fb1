"""The schedule of beat."""

import time

from celery import Celery

from config import beat
from config.beat import PunctualScheduler
from config.celery import app


def test_beat_wakes_the_queues_of_emails_and_webhooks_every_two_seconds():
    entries = {entry["task"]: entry for entry in app.conf.beat_schedule.values()}
    for task in ("emails.tasks.drain", "webhooks.tasks.drain"):
        assert entries[task]["schedule"] == 2
        assert entries[task]["options"] == {"expires": 2}


def test_no_entry_outlives_the_next_one():
    assert all(entry["options"]["expires"] <= entry["schedule"] for entry in app.conf.beat_schedule.values())


def test_the_beat_schedule_names_existing_tasks():
    app.loader.import_default_modules()
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= app.tasks.keys()


def test_beat_waits_until_a_task_is_due():
    """Celery's own scheduler asks about a hundred times before each task."""
    own = Celery("waits", broker="memory://", set_as_current=False)
    own.conf.beat_schedule = {"wake": {"task": "wake", "schedule": 0.3}}
    scheduler = PunctualScheduler(app=own)
    ticks = 0
    while scheduler.schedule["wake"].total_run_count < 3:
        ticks += 1
        assert ticks <= 15
        time.sleep(max(scheduler.tick(), 0))


def test_an_outage_of_redis_is_one_line(caplog):
    own = Celery("away", broker="redis://127.0.0.1:1", set_as_current=False)
    own.conf.update(task_publish_retry=False, broker_transport_options={"max_retries": 0})
    own.conf.beat_schedule = {"wake": {"task": "wake", "schedule": 0.1}}
    scheduler = PunctualScheduler(app=own)
    entry = scheduler.schedule["wake"]
    for _ in range(5):
        scheduler.apply_entry(entry)
    beat.outage.record_success()
    assert [record.getMessage() for record in caplog.records] == [
        "Redis does not respond; periodic tasks are not sent",
        "Redis responds again; periodic tasks are sent",
    ]
    assert caplog.records[-1].data == {"failures": 5}
