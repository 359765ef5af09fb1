"""The embedded Redis."""

from pathlib import Path

import pytest
import redis as client

from embedded.errors import CannotStart
from embedded.servers import redis
from embedded.servers.accounts import account_for
from embedded.servers.binaries import find_redis
from embedded.servers.cluster import cluster_in


def test_redis_answers_to_its_password_alone(place: Path) -> None:
    server = redis.start(place)
    assert client.Redis.from_url(server.url).ping()
    with pytest.raises(client.AuthenticationError):
        client.Redis(port=server.port, retry=None).ping()
    server.stop()
    assert not server.is_alive


def test_the_password_is_on_no_command_line(place: Path) -> None:
    server = redis.start(place, password="unheard-of")
    assert b"unheard-of" not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
    server.stop()


def test_a_throw_away_redis_leaves_nothing() -> None:
    server = redis.start_throw_away()
    assert server.temporary
    server.stop()
    assert not server.temporary.exists()


def test_without_a_redis_on_the_path_the_wheel_serves(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    server = redis.start(place)
    assert "valkey-server" in find_redis(account=account_for(cluster_in(place)), home=place)
    assert client.Redis.from_url(server.url).ping()
    server.stop()


def test_a_taken_port_is_a_sentence(place: Path) -> None:
    first = redis.start(place)
    with pytest.raises(CannotStart, match="Redis did not start"):
        redis.start(place, port=first.port)
    first.stop()
