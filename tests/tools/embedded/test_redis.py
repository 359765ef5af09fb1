"""The embedded Redis."""

from pathlib import Path

import pytest
import redis as client

from tools.embedded.errors import CannotStart
from tools.embedded.servers import redis
from tools.embedded.servers.accounts import account_for
from tools.embedded.servers.binaries import find_redis
from tools.embedded.servers.cluster import cluster_in


def test_redis_requires_its_password(open_directory: Path) -> None:
    server = redis.start(open_directory)
    assert client.Redis.from_url(server.url).ping()
    with pytest.raises(client.AuthenticationError):
        client.Redis(port=server.port, retry=None).ping()
    server.stop()
    assert not server.is_alive


def test_the_password_is_not_on_the_command_line(open_directory: Path) -> None:
    server = redis.start(open_directory, password="unheard-of")
    assert b"unheard-of" not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
    server.stop()


def test_a_throw_away_redis_removes_its_files() -> None:
    server = redis.start_throw_away()
    assert server.temporary_directory
    server.stop()
    assert not server.temporary_directory.exists()


def test_the_wheel_is_used_without_a_redis_on_the_path(open_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    server = redis.start(open_directory)
    assert "valkey-server" in find_redis(
        account=account_for(cluster_in(open_directory)), server_directory=open_directory
    )
    assert client.Redis.from_url(server.url).ping()
    server.stop()


def test_a_busy_port_is_explained(open_directory: Path) -> None:
    first = redis.start(open_directory)
    with pytest.raises(CannotStart, match="Redis failed to start"):
        redis.start(open_directory, port=first.port)
    first.stop()
