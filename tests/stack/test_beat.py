"""Beat wakes the queue for scheduled emails."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


# The timers alone, which run after five seconds without a wake-up, would be too late for some of the times.
@pytest.mark.long
def test_scheduled_emails_leave_within_about_two_seconds(stack):
    stack.start("inbox", "web", "worker", "beat")
    stack.send()
    wait_for(stack.all_delivered, seconds=60, what="a warm worker")
    first = datetime.now(UTC) + timedelta(seconds=5)
    for seconds in range(6):
        scheduled_for = (first + timedelta(seconds=seconds)).isoformat()
        assert stack.send(to=f"s{seconds}@example.com", scheduledFor=scheduled_for).status == 202
    wait_for(stack.all_delivered, seconds=60, what="the delivery of all")
    delays = "SELECT max(extract(epoch FROM sent_at - scheduled_for))::float FROM emails_email"
    assert stack.query(delays)[0][0] < 3
