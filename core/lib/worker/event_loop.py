"""The event loop for all network work of a process, in a separate thread. Knows nothing of Django."""

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from core.lib.worker.once import once

P = ParamSpec("P")
T = TypeVar("T")

# A single thread: any number of long computations take at most half of the loop's processor time.
_computations = ThreadPoolExecutor(1, thread_name_prefix="computations")
_running: set["asyncio.Task[None]"] = set()
_closed_at_stop: list[Callable[[], Awaitable[None]]] = []
CLOSE_SECONDS = 5.0


def submit_all(coroutines: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Start coroutines in the network loop of this process; they must not raise."""
    network_loop().call_soon_threadsafe(_start, coroutines)


def _start(coroutines: Sequence[Coroutine[Any, Any, None]]) -> None:
    for coroutine in coroutines:
        task = asyncio.get_running_loop().create_task(coroutine)
        # The loop itself holds only weak references to tasks.
        _running.add(task)
        task.add_done_callback(_running.discard)


@once
def network_loop() -> asyncio.AbstractEventLoop:
    """Return the running loop; it lives as long as the process, so that connections can be kept."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="network", daemon=True).start()
    return loop


def close_at_stop(close: Callable[[], Awaitable[None]]) -> None:
    """Call a function in the loop when the process stops, such as one that closes kept connections."""
    _closed_at_stop.append(close)


def close_network() -> None:
    """Close what the process has kept. Call it when no job is in flight."""
    asyncio.run_coroutine_threadsafe(_close_kept(), network_loop()).result(CLOSE_SECONDS)


async def _close_kept() -> None:
    for close in _closed_at_stop:
        await close()


async def compute_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a computation that may take more than 5 ms, and would hold up all jobs in the loop."""
    call = functools.partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_computations, call)
