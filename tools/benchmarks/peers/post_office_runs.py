"""django-post-office in a separate virtual environment, with a new database for each measurement."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

import psycopg

from tools.benchmarks.footprint import create_environment
from tools.benchmarks.peers.messages import MessageFiles
from tools.benchmarks.peers.received import ReceivedMail

SCRIPT = Path(__file__).with_name("send_queued.py")
PACKAGES = ("django-post-office", "Django<5.3", "psycopg[binary]", "dkimpy")


@dataclass(frozen=True)
class PostOffice:
    """The number of sending processes and of threads in each. signs: itself, as no mail server does."""

    processes: int = 2
    threads: int = 32
    signs: bool = False

    def measure(self, files: MessageFiles, received: ReceivedMail, *, smtp_port: int, count: int) -> float:
        """Return emails per second from the start of `send_queued_mail` to the last message at the sink."""
        with tempfile.TemporaryDirectory() as logs, running_database() as database:
            more = {"database": database, "smtp_port": smtp_port, "count": count, "directory": str(files.directory)}
            command = [str(interpreter(files)), str(SCRIPT), json.dumps({**asdict(self), **more})]
            # Its lock file is in the directory of temporary files; a run without the lock would send nothing.
            environment = {**os.environ, "TMPDIR": logs}
            with subprocess.Popen(
                command, cwd=logs, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            ) as run:
                assert run.stdout
                assert run.stdout.readline() == "stored\n"
                started = time.perf_counter()
                run.communicate("send\n", timeout=600)
                received.wait_until(count)
                seconds = time.perf_counter() - started
            assert run.returncode == 0
        received.take(count)
        return count / seconds


def install_post_office(files: MessageFiles) -> None:
    create_environment(files.directory / "venv", *PACKAGES)


def interpreter(files: MessageFiles) -> Path:
    return files.directory / "venv" / "bin" / "python"


@contextmanager
def running_database() -> Iterator[str]:
    """Yield the URL of a new database."""
    server, name = os.environ["DATABASE_URL"].rpartition("/")[0], f"peer_{uuid4().hex[:12]}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{server}/{name}"
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
