"""Event loops of tests, each in a thread, which leave no task and no connection behind.

A loop that is only stopped and closed keeps the sockets of its tasks open: a DNS lookup that was cancelled just before
needs some rounds of the loop to close its own. Whichever test runs when they are collected would report them.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SECONDS = 20.0


@contextmanager
def running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread until the context ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="event loop of a test", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_SECONDS)
        close_loop(loop)


def close_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Close a loop that does not run, after its tasks and connections. In the caller's thread, a browser's may run."""
    thread = threading.Thread(target=_close, args=[loop], name="end of an event loop", daemon=True)
    thread.start()
    thread.join(STOP_SECONDS)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_until_complete(end_tasks())
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


async def end_tasks() -> None:
    """Cancel the other tasks of the loop, and close its connections, also those whose end nobody has read yet."""
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in tasks:
        # A second cancellation would end what a cancelled task still does.
        if not task.cancelling():
            task.cancel()
    for transport in list(loop._transports.values()):  # type: ignore[attr-defined]
        transport.abort()
    await asyncio.gather(*tasks, return_exceptions=True)
    # The loop calls connection_lost, which closes the socket, in its next round.
    await asyncio.sleep(0)
