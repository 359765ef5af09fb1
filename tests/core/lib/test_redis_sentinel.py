"""Redis behind Sentinel: clients and the broker find the primary, also after another one took over."""

import json
from concurrent.futures import ThreadPoolExecutor

import kombu
import pytest

from core.lib import redis_client
from core.lib.redis_client import SentinelUrl, ask_redis, broker_settings
from suppressions import notices
from suppressions.notices import SuppressionNotice, publish_notice
from tests.core.lib.sentinel import running_sentinel
from tests.rows import each
from tests.stack.stack import wait_for


@pytest.fixture
def servers(tmp_path):
    with running_sentinel(tmp_path) as servers:
        yield servers
    redis_client._paused_until.clear()


def publish(url: str, body: str) -> None:
    """Publish as Celery does, with the settings of the broker."""
    broker, options = broker_settings(url)
    with kombu.Connection(broker, transport_options={"max_retries": 0, **options}) as connection:
        connection.SimpleQueue("queue", no_ack=True).put(body)


@pytest.mark.full
def test_clients_and_the_broker_follow_the_primary(servers):
    url = servers.url
    assert ask_redis(url, lambda client: client.set("name", "first"))
    publish(url, "first")
    with servers.client("one") as client:
        assert client.get("name") == b"first"
        assert client.llen("queue") == 1
    with servers.client("two") as client:
        wait_for(lambda: client.llen("queue") == 1, seconds=5, what="the copy of the message")
    servers.processes["one"].kill()
    wait_for(lambda: ask_redis(url, lambda client: client.set("name", "second")), seconds=30, what="a new primary")
    publish(url, "second")
    with servers.client("two") as client:
        assert client.get("name") == b"second"
        assert client.llen("queue") == 2


@pytest.mark.full
def test_notices_of_suppressions_arrive(servers, settings, monkeypatch):
    settings.REDIS_URL = servers.url
    received: list[SuppressionNotice] = []
    monkeypatch.setattr(notices, "is_stopping", lambda: bool(received))

    def publish_until_received() -> bool:
        publish_notice("ws", ["ada@example.com"])
        return bool(received)

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(notices._read_notices, received.append)
        wait_for(publish_until_received, seconds=20, what="a notice")
        reading.result(20)
    assert received[0].covers("ws", "ada@example.com", stream="", ignores_unsubscribes=False)


@each(("url", "expected"), [
    ("redis+sentinel://one/mail", [[["one", 26379]], "mail", 0, ["", ""], None]),
    ("redis+sentinel://u:p%2C@one:1,two/mail/3", [[["one", 1], ["two", 26379]], "mail", 3, ["u", "p,"], None]),
    ("redis+sentinel://[::1]:7/m?sentinel_password=x", [[["::1", 7]], "m", 0, ["", ""], "x"]),
])  # fmt: skip
def test_a_url_names_sentinels_service_and_account(url, expected):
    parts = SentinelUrl.parse(url)
    values = [parts.sentinels, parts.service, parts.database, parts.account, parts.sentinel_password]
    assert json.loads(json.dumps(values)) == expected


@each(
    "url", ["redis+sentinel://one", "redis+sentinel://one:x/mail", "redis+sentinel://one,/mail", "redis+sentinel:///m"]
)
def test_an_incomplete_url_is_refused(url):
    with pytest.raises(ValueError, match="must be like"):
        SentinelUrl.parse(url)


def test_other_urls_are_the_brokers_as_they_are():
    assert broker_settings("rediss://:x@host:6380/1") == ("rediss://:x@host:6380/1", {})
