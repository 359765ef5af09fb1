"""Servers of a benchmark: those written in Python, in another process, and its PostgreSQL."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any

import psycopg


@contextmanager
def other_process(serve: Callable[..., None], *arguments: Any) -> Iterator[int]:
    """Run a server in another process; yield the port that it sends through its last argument, a connection.

    Raises AssertionError when it ends before; its error is then in the output.
    """
    context = multiprocessing.get_context("spawn")
    ports, sender = context.Pipe(duplex=False)
    process = context.Process(target=serve, args=[*arguments, sender], daemon=True)
    process.start()
    try:
        wait([ports, process.sentinel])
        assert ports.poll(), f"the process of {serve.__qualname__} has ended"
        yield ports.recv()
    finally:
        process.kill()
        process.join()


def assert_flushes() -> None:
    """Raise AssertionError unless PostgreSQL flushes each commit to disk, as mail servers do with a message."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        for setting in ("fsync", "synchronous_commit"):
            assert connection.execute(f"SHOW {setting}").fetchone() == ("on",), f"{setting} is not on"
