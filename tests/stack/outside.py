"""The world's mail hosts and name servers, for flows: scripted servers in a thread beside the test."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from tests.delivery.scripted import ScriptedServer


@contextmanager
def mail_hosts(*servers: ScriptedServer) -> Iterator[None]:
    """Run the servers in a loop of their own while the block lasts; what they got can be read at any time."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="mail hosts", daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(timeout=20)

    stack = AsyncExitStack()
    try:
        for server in servers:
            run(stack.enter_async_context(server))
        yield
    finally:
        run(stack.aclose())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=20)
        loop.close()
