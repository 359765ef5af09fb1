"""The event loop that does all the network of a process, in a thread of its own; it knows no Django."""

import asyncio
import functools
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

_running: set["asyncio.Task[None]"] = set()


def submit_all(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Start coroutines in the network loop of this process; none of them may raise."""
    network_loop().call_soon_threadsafe(_start, works)


def _start(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    for work in works:
        task = asyncio.get_running_loop().create_task(work)
        # The loop itself holds tasks weakly.
        _running.add(task)
        task.add_done_callback(_running.discard)


@functools.lru_cache(maxsize=1)
def network_loop() -> asyncio.AbstractEventLoop:
    """Return the running loop; it lives as long as the process, so that connections can be kept."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="network", daemon=True).start()
    return loop
