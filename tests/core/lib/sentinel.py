"""Two servers of Redis, of which one replicates the other, and a sentinel."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import redis

from tests.stack.stack import free_port, wait_for
from tests.standards.tools import program

PASSWORD, SENTINEL_PASSWORD = "p@ss:word/1", "s3cret"
SERVER = 'bind 127.0.0.1\nport {port}\nsave ""\ndir {directory}\nrequirepass "{password}"\nmasterauth "{password}"\n'
SENTINEL = """bind 127.0.0.1
port {port}
dir {directory}
requirepass "{sentinel_password}"
sentinel monitor postrider 127.0.0.1 {primary} 1
sentinel auth-pass postrider {password}
sentinel down-after-milliseconds postrider 500
sentinel failover-timeout postrider 3000
"""


@dataclass
class SentinelServers:
    """The servers one and two, and the sentinel, by name."""

    directory: Path
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in ("one", "two", "sentinel")})

    def start(self, name: str, text: str, *options: str) -> None:
        file = self.directory / f"{name}.conf"
        values = {"password": PASSWORD, "sentinel_password": SENTINEL_PASSWORD, "primary": self.ports["one"]}
        file.write_text(text.format(port=self.ports[name], directory=self.directory, **values))
        command = [program("redis-server", package="redis-server"), file, *options]
        self.processes[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    @property
    def url(self) -> str:
        """The first sentinel does not respond."""
        hosts = f"127.0.0.1:{free_port()},127.0.0.1:{self.ports['sentinel']}"
        return f"redis+sentinel://:p%40ss%3Aword%2F1@{hosts}/postrider/2?sentinel_password={SENTINEL_PASSWORD}"

    def client(self, name: str) -> redis.Redis:
        password = SENTINEL_PASSWORD if name == "sentinel" else PASSWORD
        return redis.Redis(port=self.ports[name], password=password, db=0 if name == "sentinel" else 2)

    def responds(self, name: str) -> bool:
        with suppress(redis.RedisError), self.client(name) as client:
            return bool(client.ping())
        return False

    def is_ready(self) -> bool:
        """Return whether the sentinel knows the second server, which could take over."""
        with suppress(redis.RedisError), self.client("sentinel") as client:
            return any(
                replica["flags"] == "slave" and replica["master-link-status"] == "ok"
                for replica in client.sentinel_slaves("postrider")
            )
        return False


@contextmanager
def running_sentinel(directory: Path) -> Iterator[SentinelServers]:
    """Yield servers of which one is the primary, and two could take over."""
    servers = SentinelServers(directory)
    try:
        servers.start("one", SERVER)
        servers.start("two", SERVER, "--replicaof", f"127.0.0.1 {servers.ports['one']}")
        wait_for(lambda: servers.responds("one"), seconds=20, what="Redis responds", server=servers.processes["one"])
        servers.start("sentinel", SENTINEL, "--sentinel")
        sentinel = servers.processes["sentinel"]
        wait_for(servers.is_ready, seconds=30, what="the sentinel knows both servers", server=sentinel)
        yield servers
    finally:
        for process in servers.processes.values():
            process.kill()
            process.wait()
