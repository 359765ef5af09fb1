"""Objects of which a process has one."""

import threading
from concurrent.futures import ThreadPoolExecutor

from core.lib.worker.once import once


def test_threads_that_ask_at_the_same_time_get_the_same_object():
    threads, made = 8, []
    start, all_asked = threading.Barrier(threads), threading.Event()

    @once
    def thing() -> object:
        made.append(object())
        # Long enough for the other threads to ask as well.
        all_asked.wait(0.2)
        return made[-1]

    def ask() -> object:
        start.wait()
        return thing()

    with ThreadPoolExecutor(threads) as pool:
        found = [future.result() for future in [pool.submit(ask) for _ in range(threads)]]

    assert len(made) == 1
    assert found == made * threads


def test_another_object_is_created_after_clearing():
    @once
    def thing() -> object:
        return object()

    first = thing()
    assert thing() is first
    thing.cache_clear()
    assert thing() is not first
