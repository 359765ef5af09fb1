"""Event loops of tests: nothing of them is left for another test to report."""

import asyncio

from tests.event_loops import running_loop
from tests.stack.stack import REPOSITORY


def test_a_loop_ends_with_its_tasks_and_sockets():
    sockets, ended = [], []

    async def open_socket(*, closes: bool) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0))
        sockets.append(transport.get_extra_info("socket"))
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 60)
        finally:
            # Rounds of the loop that a cancelled task needs, as a lookup does.
            for _ in range(5):
                await asyncio.sleep(0)
            if closes:
                transport.close()
            ended.append(closes)

    async def open_all() -> None:
        tasks = [asyncio.create_task(open_socket(closes=closes)) for closes in (True, False)]
        while len(sockets) < len(tasks):
            await asyncio.sleep(0.001)
        tasks[0].cancel()

    with running_loop() as loop:
        asyncio.run_coroutine_threadsafe(open_all(), loop).result(20)
    assert loop.is_closed()
    assert sorted(ended) == [False, True]
    assert [one.fileno() for one in sockets] == [-1, -1]


def test_no_test_closes_a_loop_in_another_way():
    tests = (REPOSITORY / "tests").rglob("*.py")
    closing = {path.name for path in tests if "loop.close()" in path.read_text("utf-8")}
    assert closing == {"event_loops.py", "test_event_loops.py"}
