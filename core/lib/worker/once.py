"""Objects of which a process has one: a queue processor, an event loop.

functools.cache calls the function twice if two threads need the first result at the same time, and each gets another
object.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

T_co = TypeVar("T_co", covariant=True)


class Once(Protocol[T_co]):
    def __call__(self) -> T_co: ...

    def cache_clear(self) -> None:
        """Forget the object; the next call creates another one. For tests."""


def once(create: Callable[[], T_co]) -> Once[T_co]:
    """Decorate a function without parameters, so that it is called once per process."""
    lock, cached = threading.Lock(), functools.cache(create)

    @functools.wraps(create)
    def get() -> T_co:
        with lock:
            return cached()

    cast(Any, get).cache_clear = cached.cache_clear
    return cast(Once[T_co], get)
