"""A value that the network loop needs again and again, read from the database in a thread every few seconds."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from django.db import Error, connection

log = logging.getLogger("postrider.worker")

T = TypeVar("T")


class RefreshedValue(Generic[T]):
    """The result of `read`, not older than some seconds; the network loop never waits for the database by itself.

    initial: the value while the first read fails. A read that fails keeps the former value.
    name: of the thread.
    """

    def __init__(self, read: Callable[[], T], *, initial: T, seconds: float, name: str) -> None:
        self._read = read
        self._value = initial
        self._seconds = seconds
        self._read_at = float("-inf")
        self._reading: asyncio.Future[T] | None = None
        self._name = name
        self._thread = ThreadPoolExecutor(1, name)

    async def get(self) -> T:
        if self._reading is None and time.monotonic() - self._read_at >= self._seconds:
            self._reading = asyncio.get_running_loop().run_in_executor(self._thread, self._read_in_thread)
        if self._reading:
            # All messages of a batch wait for the same answer.
            self._value = await asyncio.shield(self._reading)
            self._read_at, self._reading = time.monotonic(), None
        return self._value

    def _read_in_thread(self) -> T:
        try:
            return self._read()
        except Error as error:
            log.warning("a value could not be read again", exc_info=error, extra={"data": {"value": self._name}})
            return self._value
        finally:
            # Rarely used: a connection of its own would stay open for each process.
            connection.close()
