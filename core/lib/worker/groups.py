"""Groups: items of several sessions that are ready at the same time are processed in one step.

While one group is processed, the next one gathers; a single item does not wait (docs/decisions/0123).
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class ReadyItem(Generic[T, R]):
    """An item, and the result that its session waits for."""

    item: T
    result: asyncio.Future[R]


class Groups(Generic[K, T, R]):
    """Ready items of all sessions of a process, by a key; those of one key are processed group after group.

    process: returns the results of a group in its order. If it raises, each item of the group has the error.
    size_of, max_bytes: a group of several items has at most so many bytes.
    """

    def __init__(
        self,
        process: Callable[[Sequence[T]], Awaitable[Sequence[R]]],
        *,
        max_items: int,
        max_bytes: int = 0,
        size_of: Callable[[T], int] = lambda _: 0,
    ) -> None:
        self._process = process
        self._max_items, self._max_bytes, self._size_of = max_items, max_bytes, size_of
        self._ready: dict[K, list[ReadyItem[T, R]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def process(self, key: K, item: T) -> R:
        """Process an item with those that are ready at the same time; return its result."""
        ready = ReadyItem[T, R](item, asyncio.get_running_loop().create_future())
        if key in self._ready:
            self._ready[key].append(ready)
        else:
            self._ready[key] = [ready]
            task = asyncio.create_task(self._process_ready(key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await ready.result

    async def _process_ready(self, key: K) -> None:
        """Process one group after another until no item of the key is ready."""
        ready = self._ready[key]
        while ready:
            count = self._group_size(ready)
            group, ready[:count] = ready[:count], []
            await self._process_group(group)
        del self._ready[key]

    def _group_size(self, ready: Sequence[ReadyItem[T, R]]) -> int:
        size = 0
        for count, one in enumerate(ready[: self._max_items]):
            size += self._size_of(one.item)
            if count and size > self._max_bytes:
                return count
        return min(len(ready), self._max_items)

    async def _process_group(self, group: Sequence[ReadyItem[T, R]]) -> None:
        # A session that has ended does not wait any more.
        try:
            results = await self._process([one.item for one in group])
        except Exception as error:  # noqa: BLE001 - raised where the results are awaited
            for one in group:
                if not one.result.done():
                    one.result.set_exception(error)
            return
        for one, result in zip(group, results, strict=True):
            if not one.result.done():
                one.result.set_result(result)
