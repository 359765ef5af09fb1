"""The SQL of the network loop, which makes none itself."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError, connection

from core.delivery.transports.interface import LeaseLost

T = TypeVar("T")

# One thread suffices: only messages whose transport has just failed need it, and the paces of receivers once a second.
_thread = ThreadPoolExecutor(1, thread_name_prefix="database")
# The connection is kept for the next call within this time.
KEEP_SECONDS = 5.0
_closing: dict[asyncio.AbstractEventLoop, asyncio.TimerHandle] = {}


async def run_in_database_thread(function: Callable[..., T], *args: Any) -> T:
    """Run SQL for the network loop. Raises LeaseLost if the database does not answer: nothing was sent yet."""

    def run() -> T:
        try:
            return function(*args)
        except (DatabaseError, InterfaceError) as error:
            connection.close()
            raise LeaseLost from error

    loop = asyncio.get_running_loop()
    if timer := _closing.pop(loop, None):
        timer.cancel()
    try:
        return await loop.run_in_executor(_thread, run)
    finally:
        _closing[loop] = loop.call_later(KEEP_SECONDS, _close, loop)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    _closing.pop(loop, None)
    close_connection()


def close_connection() -> "Future[None]":
    """Close the connection after the calls under way."""
    return _thread.submit(_close_own)


def _close_own() -> None:
    # The connection of the thread that runs this.
    connection.close()
