"""The schedule of beat."""

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
