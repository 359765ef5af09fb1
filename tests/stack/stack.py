"""Stack of the real processes with a separate database and Redis, for tests that break them."""

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

from core.lib.worker.failpoints import TERMINATE
from tools.embedded.logs import read_log_tail
from tools.embedded.servers import redis
from tools.embedded.servers.ports import choose_ports

REPOSITORY = Path(__file__).resolve().parents[2]
# A machine that other programs keep busy may need most of it.
START_SECONDS = 120
PYTHON = sys.executable
# The URL of a server, the name of the template in it and the API key.
SHARED_TEMPLATE = "POSTRIDER_STACK_TEMPLATE"
WORKER = ["-m", "celery", "-A", "config", "-q", "worker", "--pool", "threads", "--concurrency", "4",
          "--without-gossip", "--without-mingle", "--loglevel", "WARNING"]  # fmt: skip
COMMANDS = {
    "web": ["-m", "gunicorn", "-c", "config/gunicorn.py", "config.wsgi"],
    "worker": WORKER,
    "workers": ["manage.py", "worker"],
    "inbox": ["manage.py", "inbox"],
    "inbound": ["manage.py", "inbound"],
    "submission": ["manage.py", "submission"],
    "beat": ["-m", "config.beat"],
    "service": ["manage.py", "serve"],
}


# Chosen ports, some of which are not used yet.
_chosen: set[int] = set()


def free_port() -> int:
    """Return a port below those that the kernel gives to connections, and another one each time."""
    while (port := choose_ports(1)[0]) in _chosen:
        pass
    _chosen.add(port)
    return port


def listens(port: int) -> bool:
    """Return whether a server listens on the port on loopback."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def answers_200(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except urllib.error.HTTPError as error:
        error.close()
    except OSError:
        pass
    return False


def wait_for(
    condition: Callable[[], Any],
    *,
    seconds: float,
    what: str,
    server: "subprocess.Popen[Any] | None" = None,
    log: Path | None = None,
) -> Any:
    """Poll until the condition is true. Raises AssertionError with the description `what`.

    server: the process that is waited for; once it has ended, the error is raised without further waiting.
    log: its output, whose last lines are part of the error.
    """
    deadline, failure = time.monotonic() + seconds, f"not within {seconds} s"
    while time.monotonic() < deadline:
        if result := condition():
            return result
        if server and server.poll() is not None:
            failure = f"{server.args!r} has ended with {server.returncode}"
            break
        time.sleep(0.05)
    tail = f"\nLast lines of {log}:\n{read_log_tail(log, lines=20)}" if log else ""
    raise AssertionError(f"{failure}: {what}{tail}")


@dataclass
class Reply:
    status: int
    body: dict[str, Any]
    seconds: float


@dataclass
class Stack:
    """Processes by name; `url`: of the web process, `key`: a full-access key of the demo workspace.

    repository: the checkout whose code runs.
    """

    logs: Path
    environment: dict[str, str]
    redis: Any
    repository: Path = REPOSITORY
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    key: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.environment['PORT']}"

    @property
    def database(self) -> str:
        return self.environment["DATABASE_URL"]

    def manage(self, *arguments: str) -> str:
        command = [PYTHON, "manage.py", *arguments]
        run = subprocess.run(
            command, cwd=self.repository, env=self.environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    def start(self, *names: str, **variables: str) -> None:
        for name in names:
            kind = name.partition("-")[0]
            log_file = self.logs / f"{name}.log"
            with log_file.open("ab") as log:
                self.processes[name] = subprocess.Popen(
                    [PYTHON, *COMMANDS[kind]],
                    cwd=self.repository,
                    env={**self.environment, **variables},
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            self._wait_until_started(kind, self.processes[name], log_file)

    def _wait_until_started(self, kind: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
        """Wait for a process that others connect to."""
        conditions: dict[str, Callable[[], bool]] = {
            "web": self.is_healthy,
            "service": self.is_ready,
            "inbox": lambda: self.listens("INBOX_PORT"),
            "inbound": lambda: self.listens("INBOUND_PORT"),
            "submission": lambda: self.listens("SUBMISSION_PORTS"),
        }
        if condition := conditions.get(kind):
            wait_for(condition, seconds=START_SECONDS, what=f"{kind} is ready", server=server, log=log)

    def is_healthy(self) -> bool:
        return answers_200(f"{self.url}/healthz")

    def is_ready(self) -> bool:
        return answers_200(f"{self.url}/readyz")

    def listens(self, setting: str) -> bool:
        """Return whether a server listens on the port of a setting."""
        return listens(int(self.environment[setting]))

    def signal(self, name: str, number: int) -> None:
        os.killpg(self.processes[name].pid, number)

    def kill(self, name: str) -> None:
        self.signal(name, signal.SIGKILL)
        self.processes.pop(name).wait()

    def stop(self, names: Collection[str]) -> None:
        """Kill processes, some of which may have exited."""
        for name in names:
            process = self.processes.pop(name)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def call(self, method: str, path: str, body: Any = None) -> Reply:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/v1{path}", data, headers, method=method)
        started = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=START_SECONDS) as response:
                status, content = response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                status, content = error.code, error.read()
        return Reply(status, json.loads(content), time.monotonic() - started)

    def send(self, **fields: Any) -> Reply:
        body = {"from": "hello@demo.example", "to": "ada@example.com", "subject": "Hi", "html": "<p>Hi</p>", **fields}
        return self.call("POST", "/emails/send", body)

    def connect(self, *, receive_bytes: int = 0) -> socket.socket:
        """Connect to web. receive_bytes: the size of the receive buffer; by default that of the system."""
        client = socket.socket()
        if receive_bytes:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.connect(("127.0.0.1", int(self.environment["PORT"])))
        return client

    def request_head(self, start: str, *headers: str) -> bytes:
        """Return the head of a request with the key."""
        fields = (f"Authorization: Bearer {self.key}", "Content-Type: application/json", *headers)
        return "\r\n".join([start, f"Host: {urlsplit(self.url).netloc}", *fields, "", ""]).encode()

    def query(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database, autocommit=True) as connection:
            try:
                return connection.execute(sql, parameters).fetchall()
            except psycopg.OperationalError:
                # The connections of the service and this one were terminated together.
                if connection.broken:
                    return self.query(sql, *parameters)
                raise

    def execute(self, sql: str) -> None:
        """Run a statement, again if it loses a deadlock with the running service."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            try:
                connection.execute(sql)
            except psycopg.errors.DeadlockDetected:
                self.execute(sql)

    def drop_connections(self) -> None:
        """Terminate all connections of the processes to the database."""
        self.query(TERMINATE)

    def caught(self) -> dict[str, int]:
        """Return the number of messages in the inbox per recipient, by return path."""
        return dict(self.query("SELECT envelope_from, count(*) FROM inbox_caughtmail GROUP BY 1"))

    def all_delivered(self) -> bool:
        return self.query("SELECT count(*) FROM emails_email WHERE status <> 'delivered'") == [(0,)]


@functools.cache
def _template(server: str, repository: Path) -> tuple[str, str]:
    """Create a migrated database with the demo account, once per test run; return its name and the API key."""
    shared_server, *template = os.environ.get(SHARED_TEMPLATE, "").split() or [""]
    if shared_server == server:
        name, key = template
        return name, key
    name = f"stack_template_{uuid4().hex[:12]}"
    with psycopg.connect(database_url(server, "postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    atexit.register(_drop, server, name)
    environment = {**os.environ, "MODE": "embedded", "DATABASE_URL": database_url(server, name)}
    stack = Stack(logs=Path(), environment=environment, redis=None, repository=repository)
    stack.manage("migrate", "--verbosity", "0")
    return name, json.loads(stack.manage("create_demo"))["apiKey"]


def share_template() -> None:
    """Create the template in this process; processes that it starts copy it, too."""
    server = os.environ["DATABASE_URL"]
    os.environ[SHARED_TEMPLATE] = " ".join([server, *_template(server, REPOSITORY)])


def _drop(server: str, name: str) -> None:
    # A server started by a test may have been stopped and removed.
    with suppress(psycopg.OperationalError):
        drop_database(server, name)


def database_url(server: str, name: str) -> str:
    """Return the URL of a database. server: the URL of any database of the server."""
    return urlsplit(server)._replace(path=f"/{name}").geturl()


def drop_database(server: str, name: str) -> None:
    """Drop a database, if it exists, and end its connections."""
    with psycopg.connect(database_url(server, "postgres"), autocommit=True) as connection:
        while True:
            try:
                connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            except psycopg.errors.InsufficientPrivilege:
                # Only a superuser may end an automatic vacuum of the database; without FORCE, PostgreSQL ends it.
                with suppress(psycopg.errors.ObjectInUse):
                    connection.execute(f"DROP DATABASE IF EXISTS {name}")
            else:
                return


@contextmanager
def running_stack(
    logs: Path, *, repository: str | Path = REPOSITORY, pooler: str = "", **variables: str
) -> Iterator[Stack]:
    """Yield a stack with a migrated database, the demo account and Redis, without other processes.

    pooler: the URL of a PgBouncer through which the processes connect.
    """
    server, name = os.environ["DATABASE_URL"], f"stack_{uuid4().hex[:12]}"
    repository = Path(repository)
    template, key = _template(server, repository)
    with psycopg.connect(database_url(server, "postgres"), autocommit=True) as connection:
        # With the default strategy, a crash of PostgreSQL before the next checkpoint resets the copied sequences: their
        # next values are in the write-ahead log of the template only.
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    redis_server = redis.start_throw_away()
    port = free_port()
    environment = {
        **os.environ,
        "MODE": "embedded",
        "DATABASE_URL": database_url(pooler or server, name),
        "REDIS_URL": redis_server.url,
        "PORT": str(port),
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "INBOX_PORT": str(free_port()),
        "INBOUND_PORT": str(free_port()),
        "SUBMISSION_PORTS": str(free_port()),
        "SUBMISSION_CONCURRENCY": "1",
        "WEB_CONCURRENCY": "3",
        "RATE_LIMIT": "off",
        # A busy machine refuses no request.
        "WEB_MAX_WAIT_MS": "60000",
        **variables,
    }
    stack = Stack(logs=logs, environment=environment, redis=redis_server, repository=repository)
    try:
        stack.key = key
        yield stack
    finally:
        stack.stop([*stack.processes])
        with suppress(ProcessLookupError):
            # A chaos run may have stopped or replaced Redis.
            os.kill(stack.redis.pid, signal.SIGCONT)
        stack.redis.stop()
        drop_database(server, name)
