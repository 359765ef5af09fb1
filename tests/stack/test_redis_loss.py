"""While Redis is away, each process logs a few lines, not one for each attempt; with Sentinel, it comes back."""

import json
import time

import pytest

from tests.core.lib.sentinel import running_sentinel
from tests.stack.stack import running_stack, wait_for

pytestmark = pytest.mark.stack

SECONDS = 15
PROCESSES = ("web", "worker", "beat")
# The start of the outage: of wake-ups and limits, of notices of suppressions, and of Celery's consumer.
MOST_LINES = 4


def test_the_loss_of_redis_is_a_few_lines(stack):
    stack.start("inbox", *PROCESSES)
    assert stack.send().status == 202
    sizes = {name: (stack.logs / f"{name}.log").stat().st_size for name in PROCESSES}
    stack.redis.stop()
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        assert stack.send().status == 202
        time.sleep(0.5)
    for name in PROCESSES:
        lines = (stack.logs / f"{name}.log").read_bytes()[sizes[name] :].decode().splitlines()
        about_redis = [line for line in map(parse, lines) if "127.0.0.1" in str(line) and "error" in str(line)]
        assert 1 <= len(about_redis) <= MOST_LINES, about_redis


def parse(line: str) -> dict[str, str]:
    return json.loads(line) if line.startswith("{") else {"text": line}


def test_processes_follow_the_primary_of_sentinels(tmp_path):
    with running_sentinel(tmp_path) as servers, running_stack(tmp_path, REDIS_URL=servers.url) as stack:
        stack.start("inbox", *PROCESSES)

        def tasks_are_taken(name: str) -> bool:
            """Return whether beat's tasks pass through a server; nothing is ever sent to the other one."""
            with servers.client(name) as client:
                return client.info("commandstats").get("cmdstat_brpop", {}).get("calls", 0) > 1 and not client.llen(
                    "celery"
                )

        wait_for(lambda: tasks_are_taken("one"), seconds=60, what="the worker takes tasks")
        servers.processes["one"].kill()
        wait_for(lambda: tasks_are_taken("two"), seconds=90, what="the worker takes tasks of the new primary")
        assert stack.send().status == 202
        wait_for(stack.all_delivered, seconds=30, what="the email is delivered")
