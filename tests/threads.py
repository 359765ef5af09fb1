"""Threads of a test, each with its own database connection."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection


def own_connection(act: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that closes the connection of its thread at its end."""

    def run(*arguments: Any) -> Any:
        try:
            return act(*arguments)
        finally:
            connection.close()

    return run


def run_concurrently(act: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
    """Call a function with each value, all at the same time; return the results in the order of the values."""
    values = list(values)
    start = threading.Barrier(len(values))

    def begin(value: Any) -> Any:
        start.wait()
        return act(value)

    with ThreadPoolExecutor(len(values)) as pool:
        return list(pool.map(own_connection(begin), values))
