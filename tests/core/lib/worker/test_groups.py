"""Groups of items that are ready at the same time."""

import asyncio

import pytest

from core.lib.worker.groups import Groups


def process_all(items: list[tuple[str, int]], *, fails=lambda _: False, **options) -> tuple[list, list[list[int]]]:
    """Process items, by key and value, that are ready together; return the results or errors, and the groups."""
    groups: list[list[int]] = []

    async def process(group):
        groups.append(list(group))
        await asyncio.sleep(0)
        if fails(group):
            raise ValueError("this group")
        return [-item for item in group]

    async def run():
        ready = Groups(process, size_of=lambda item: item, **options)
        return await asyncio.gather(*(ready.process(*item) for item in items), return_exceptions=True)

    return asyncio.run(run()), groups


def test_a_group_has_the_items_of_one_key_and_at_most_so_many():
    items = [("a", 0), ("b", 0)] * 5
    results, groups = process_all(items, max_items=3)
    assert results == [0] * 10
    assert sorted(map(len, groups)) == [2, 2, 3, 3]


def test_a_group_has_at_most_so_many_bytes_except_for_one_large_item():
    results, groups = process_all([("a", size) for size in (4, 4, 4, 50, 1, 1)], max_items=10, max_bytes=10)
    assert groups == [[4, 4], [4], [50], [1, 1]]
    assert results == [-4, -4, -4, -50, -1, -1]


def test_an_error_is_that_of_each_item_of_its_group_and_the_next_group_follows():
    results, groups = process_all([("a", size) for size in (6, 5, 1)], fails=lambda group: 6 in group, max_items=1)
    assert [type(results[0]), *results[1:]] == [ValueError, -5, -1]
    assert groups == [[6], [5], [1]]


def test_items_gather_while_a_group_is_processed_and_a_single_one_does_not_wait():
    async def run():
        may_end, groups = asyncio.Event(), []

        async def process(group):
            groups.append(list(group))
            await may_end.wait()
            return group

        ready = Groups(process, max_items=10)
        tasks = [asyncio.create_task(ready.process("a", 0))]
        await asyncio.sleep(0.01)
        assert groups == [[0]]
        tasks += [asyncio.create_task(ready.process("a", number)) for number in range(1, 4)]
        await asyncio.sleep(0.01)
        # A session that ends does not matter to the others.
        tasks[2].cancel()
        may_end.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [results[0], results[1], results[3]] == [0, 1, 3]
        assert isinstance(results[2], asyncio.CancelledError)
        return groups

    assert asyncio.run(run()) == [[0], [1, 2, 3]]


@pytest.mark.parametrize("count", [1, 5])
def test_after_an_error_the_key_is_free_again(count):
    async def run():
        async def process(group):
            if len(groups) < 1:
                groups.append(group)
                raise ValueError("once")
            return group

        groups: list = []
        ready = Groups(process, max_items=10)
        first = await asyncio.gather(*(ready.process("a", 1) for _ in range(count)), return_exceptions=True)
        assert [type(one) for one in first] == [ValueError] * count
        return await ready.process("a", 2)

    assert asyncio.run(run()) == 2
