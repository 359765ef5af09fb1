"""The event loop that does all the network of a process, in a thread of its own; it knows no Django."""

import asyncio
import functools
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def submit(work: Coroutine[Any, Any, T]) -> "Future[T]":
    """Start a coroutine in the network loop of this process."""
    return asyncio.run_coroutine_threadsafe(work, network_loop())


@functools.lru_cache(maxsize=1)
def network_loop() -> asyncio.AbstractEventLoop:
    """Return the running loop; it lives as long as the process, so that connections can be kept."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="network", daemon=True).start()
    return loop
