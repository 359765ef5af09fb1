"""Rows of one test, for tests whose rows are too many to make all fixtures for each of them."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from django.db import connection, transaction

MAX_ROW_LENGTH = 200


def each(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each row as `pytest.mark.parametrize` does, but in one case, which makes its fixtures once.

    All rows run. Those that failed are reported together, with the traceback of the first one. A row's changes to the
    database are rolled back, except in a test of real transactions. The rows share a transaction, and so its time.
    """
    single = isinstance(names, str)
    table = [dict(zip([names] if single else names, [row] if single else row, strict=True)) for row in rows]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run_rows(*instance: Any, **fixtures: Any) -> None:
            failed = []
            for row in table:
                try:
                    with _rolled_back():
                        test(*instance, **fixtures, **row)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all rows run
                    failed.append((row, error))
            if failed:
                listed = "\n".join(f"{ascii(row)[:MAX_ROW_LENGTH]}: {error}" for row, error in failed)
                raise AssertionError(f"{len(failed)} of {len(table)} rows failed\n{listed}") from failed[0][1]

        signature = inspect.signature(test)
        fixtures = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.name not in ([names] if single else names)
        ]
        run_rows.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run_rows

    return decorate


@contextlib.contextmanager
def _rolled_back() -> Iterator[None]:
    if not connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
