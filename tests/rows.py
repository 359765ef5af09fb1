"""Rows of one test, for tests whose rows are too many to make all fixtures for each of them."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest
from django.core.cache import cache as django_cache
from django.db import connection, transaction

from core.lib.worker.database_outage import database_outage
from core.request_log.recording import recorder as request_recorder
from core.workspaces.api import authentication
from domains.services import sending_domain_cache
from emails.queue_stats import stats_cache
from interfaces.tracking.recorder import recorder
from streams.services import streams_cache

KEPT_IN_MEMORY = (
    authentication.cache, sending_domain_cache, streams_cache, stats_cache, django_cache, request_recorder, recorder,
    database_outage,
)  # fmt: skip
MAX_ROW_LENGTH = 200
Test = Callable[..., None]


def each(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test for each row as `pytest.mark.parametrize` does, but in one case, which makes its fixtures once.

    All rows run. Those that failed are reported together, with the traceback of the first one. Changes that a row makes
    in the database, the caches and the fixtures monkeypatch and settings are undone, except in a test of real
    transactions. The rows share a transaction, and so its time.
    """
    single = isinstance(names, str)
    table = [dict(zip([names] if single else names, [row] if single else row, strict=True)) for row in rows]

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run_rows(*instance: Any, **fixtures: Any) -> None:
            failed = []
            for row in table:
                try:
                    with undone(), _separate_patches(fixtures) as separate:
                        test(*instance, **separate, **row)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all rows run
                    failed.append((row, error))
            if failed:
                listed = "\n".join(f"{ascii(row)[:MAX_ROW_LENGTH]}: {error}" for row, error in failed)
                raise AssertionError(f"{len(failed)} of {len(table)} rows failed\n{listed}") from failed[0][1]

        signature = inspect.signature(test)
        kept = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.name not in ([names] if single else names)
        ]
        run_rows.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run_rows

    return decorate


@contextmanager
def undone() -> Iterator[None]:
    """Undo the changes of the database, and forget what is kept in memory."""
    if not connection.in_atomic_block:
        yield
        return
    try:
        with transaction.atomic():
            yield
            # As at the end of a test: constraints that are deferred until the commit.
            connection.check_constraints()
            transaction.set_rollback(True)
    finally:
        forget()


def forget() -> None:
    """Empty what a process keeps in memory between requests."""
    for kept in KEPT_IN_MEMORY:
        kept.clear()


@contextmanager
def _separate_patches(fixtures: dict[str, Any]) -> Iterator[dict[str, Any]]:
    overrides = fixtures["settings"]._to_restore if "settings" in fixtures else []
    count = len(overrides)
    try:
        with pytest.MonkeyPatch.context() as patch:
            yield fixtures | ({"monkeypatch": patch} if "monkeypatch" in fixtures else {})
    finally:
        while len(overrides) > count:
            overrides.pop().disable()
