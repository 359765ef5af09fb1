"""Processes that read messages and are killed: by the operating system, by a message, or by neither."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.db.models import F, Func, Value

from emails.models import Recipient
from receiving.models import Message, ReceivedEmail
from receiving.unread.queue import MAX_READINGS
from tests.emails.builders import send
from tests.receiving.builders import arrive, make_route, with_field

pytestmark = [pytest.mark.full, pytest.mark.django_db(transaction=True)]

LEASE_SECONDS = 4
MANY_PARTS = b"--x\r\n\r\npart\r\n" * 200 + b"--x--\r\n"
MULTIPART = b'From: <ada@example.com>\r\nContent-Type: multipart/mixed; boundary="x"\r\n\r\n' + MANY_PARTS


def start_worker() -> "subprocess.Popen[bytes]":
    """Start a process that reads messages of the database of this test; return it when it begins."""
    url = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
    variables = {"DATABASE_URL": url, "LEASE_SECONDS": str(LEASE_SECONDS), "DJANGO_SETTINGS_MODULE": "config.settings"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.receiving.reading_worker"],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdout.readline() == b"begins\n"
    return process


def run_worker() -> int:
    """Run a worker to its end; return its exit code."""
    with start_worker() as process:
        return process.wait(120)


def pass_seconds(seconds: float) -> None:
    """Move the due times of all messages into the past, as if time had passed."""
    interval = Func(Value(f"{seconds} seconds"), template="(%(expressions)s)::interval")
    Message.objects.filter(read_at=None).update(due_at=F("due_at") - interval)


def statuses() -> Counter[str]:
    return Counter(ReceivedEmail.objects.values_list("status", flat=True))


def test_workers_that_are_killed_while_they_read_make_no_message_unreadable(alice, receiving):
    make_route(alice.workspace)
    for number in range(60):
        arrive(with_field(f"X-Number: {number}", MULTIPART))
    chance, kills = random.Random(2), 0
    while kills < 10 and statuses()["stored"]:
        with start_worker() as process:
            time.sleep(chance.uniform(0.05, 0.4))
            process.kill()
        kills += 1
        pass_seconds(LEASE_SECONDS)
    while statuses()["stored"]:
        pass_seconds(128 * LEASE_SECONDS)
        assert run_worker() == 0
    assert (statuses(), kills > 2) == ({"processed": 60}, True)


@pytest.mark.parametrize(("kind", "has_header"), [("body", True), ("header", False)])
def test_a_message_that_ends_its_workers_is_given_up_and_the_others_are_read(key, alice, receiving, kind, has_header):
    make_route(alice.workspace, replies_only=True)
    sent_id = send(key)
    answers = f"In-Reply-To: <{Recipient.objects.get().id}@alice.example>"
    killer = arrive(with_field(f"X-Ends: {kind}", with_field(answers)))
    for number in range(20):
        arrive(with_field(f"X-Number: {number}", with_field(answers)))
    deaths = 0
    while run_worker():
        deaths += 1
        pass_seconds(128 * LEASE_SECONDS)
    killer.refresh_from_db()
    assert (deaths, statuses()) == (MAX_READINGS, {"processed": 20, "unreadable": 1})
    # With its header, it is the reply that it is; without, it is published nevertheless.
    found = (killer.sender, killer.subject, killer.reply_email_id)
    assert found == (("ada@example.com", "Where is my order?", sent_id) if has_header else ("", "", None))
