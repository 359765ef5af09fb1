"""More concurrent requests than threads: requests that waited too long are answered with 503, or 429 to a workspace."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.stack.stack import Reply, wait_for

pytestmark = pytest.mark.stack
# Each request occupies the only process for some time.
RECIPIENTS = [{"to": f"r{number}@example.com"} for number in range(500)]
MAX_WAIT_SECONDS = 0.2
WORKSPACES = 30
CREATE_WORKSPACES = f"""
from tests.conftest import make_account, make_key
print(*[make_key(make_account(f"w{{number}}").workspace) for number in range({WORKSPACES})])
"""


def test_a_workspace_with_too_many_requests_gets_429_and_keeps_accepted_emails(stack):
    stack.start("web", WEB_CONCURRENCY="1", WEB_MAX_WAIT_MS=f"{MAX_WAIT_SECONDS * 1000:.0f}")
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send_concurrently, stack, 24)
        pending = "SELECT count(*) FROM emails_pending"
        wait_for(lambda: stack.query(pending)[0][0], seconds=60, what="the first emails")
        wait_for(stack.is_healthy, seconds=60, what="an answer to a health check under overload")
        assert not sent.done(), "the overload is over"
    answers = [answer for answer in sent.result() if answer.status != 202]
    assert answers, "one process cannot accept all of these in time"
    assert {(answer.status, answer.body["code"]) for answer in answers} == {(429, "too_many_concurrent_requests")}
    accepted = 24 - len(answers)
    assert accepted
    assert stack.query(pending) == [(accepted * 500,)]
    # No request is waiting any more.
    wait_for(lambda: stack.send().status == 202, seconds=60, what="an accepted email")


def test_an_overloaded_service_answers_503(stack):
    stack.start("web", WEB_CONCURRENCY="1", WEB_MAX_WAIT_MS="50")
    keys = stack.manage("shell", "--verbosity", "0", "-c", CREATE_WORKSPACES).split()[-WORKSPACES:]
    callers = [replace(stack, key=key) for key in keys]
    with ThreadPoolExecutor(WORKSPACES) as pool:
        statuses = Counter(answer.status for answers in pool.map(call_often, callers) for answer in answers)
    assert set(statuses) == {200, 503}


def call_often(stack) -> list[Reply]:
    return [stack.call("GET", "/openapi.json") for _ in range(5)]


def send_concurrently(stack, count: int) -> list[Reply]:
    stack.call("POST", "/templates", {"name": "t", "alias": "t", "subject": "s", "htmlContent": "<p>Hi</p>"})
    batch = {"from": "hello@demo.example", "templateId": "t", "recipients": RECIPIENTS}
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: stack.call("POST", "/emails/batch", batch), range(count)))
