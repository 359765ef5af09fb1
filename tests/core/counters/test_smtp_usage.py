"""Use of what the sessions of an SMTP server share."""

import asyncio
import math
from collections import Counter

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from core.counters.smtp_usage import BYTES, REFUSED, SESSIONS, SmtpUsage, read_usage
from core.lib.mail.smtp_limiter import ConnectionLimiter
from core.lib.mail.smtp_limits import SessionLimits

pytestmark = pytest.mark.django_db


class BusySession:
    idle_seconds = 0.0
    can_end_for_others = False
    bytes_per_second = math.inf


def test_each_measure_has_its_counts(monkeypatch):
    monkeypatch.setattr("core.counters.smtp_usage.SAVE_SECONDS", 0.05)
    limiter = ConnectionLimiter(SessionLimits(sessions=40))
    for number in range(43):
        limiter.open(BusySession(), f"192.0.2.{number}")
    async_to_sync(save_once)(SmtpUsage("submission", limiter, read_bytes=lambda: 70_000))
    assert dict(read_usage(SESSIONS)) == {("submission",): 2, ("inbound",): 0}
    assert dict(read_usage(BYTES)) == {("submission",): 3500, ("inbound",): 0}
    assert +Counter(dict(read_usage(REFUSED))) == {("submission", "all"): 3}


async def save_once(usage):
    is_saved = asyncio.Event()

    async def run(step):
        await sync_to_async(step)()
        is_saved.set()

    saving = asyncio.create_task(usage.keep_saving(run))
    await is_saved.wait()
    saving.cancel()
