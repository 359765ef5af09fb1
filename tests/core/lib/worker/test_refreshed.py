"""A value that is read again after some seconds, in a thread."""

import asyncio
import threading

import pytest
from django.db import OperationalError

from core.lib.worker.refreshed import RefreshedValue

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_read_serves_all_that_ask_within_the_time():
    threads = []

    def read():
        threads.append(threading.current_thread())
        return len(threads)

    async def ask():
        value = RefreshedValue(read, initial=0, seconds=60, name="test")
        return await asyncio.gather(*(value.get() for _ in range(50))), await value.get()

    assert asyncio.run(ask()) == ([1] * 50, 1)
    assert threads[0] is not threading.main_thread()


def test_it_is_read_again_after_the_time():
    numbers = iter(range(1, 10))

    async def ask():
        value = RefreshedValue(lambda: next(numbers), initial=0, seconds=0.05, name="test")
        first = await value.get()
        await asyncio.sleep(0.06)
        return first, await value.get()

    assert asyncio.run(ask()) == (1, 2)


def test_a_failed_read_keeps_the_former_value():
    answers = iter(["first", OperationalError("gone"), "second"])

    def read():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask():
        value = RefreshedValue(read, initial="", seconds=0, name="test")
        return [await value.get() for _ in range(3)]

    assert asyncio.run(ask()) == ["first", "first", "second"]
