"""Metrics are summed over all web processes, independent of the process that answers the scrape."""

import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.stack


def scrape(stack):
    with urllib.request.urlopen(f"{stack.url}/metrics", timeout=5) as response:
        text = response.read().decode()
    families = text_string_to_metric_families(text)
    return {(sample.name, *sorted(sample.labels.values())): sample.value for one in families for sample in one.samples}


def test_every_process_reports_the_requests_of_all_processes(stack):
    stack.start("web", WEB_CONCURRENCY="3")
    for _ in range(30):
        assert stack.send().status == 202
    for _ in range(6):
        metrics = scrape(stack)
        assert metrics["postrider_request_seconds_count", "2xx", "email-send"] == 30
        assert metrics["postrider_queue_recipients", "ready"] == 30
    assert (metrics["postrider_up",], metrics["postrider_redis_up",]) == (1, 1)
    assert {metrics["postrider_requests_unlogged_total", reason] for reason in ("buffer", "share", "end")} == {0}
