"""Counter of the submission server's replies for `/metrics` of web.

The processes of web and submission may run on different machines, so the counts go through the database, like the
outcomes of delivery attempts (docs/decisions/0045).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial

from django.db import Error

from counters import counters

log = logging.getLogger("postrider.submission")

ReplyKind = tuple[str, str]
PREFIX = "submission"
SAVE_SECONDS = 10.0

# Replies of this process that are not saved yet, by command and code.
_replies: Counter[ReplyKind] = Counter()


def count_reply(command: str, reply: str) -> None:
    _replies[command, reply[:3]] += 1


async def keep_saving_replies(run: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
    """Save the counts from time to time, until the task is cancelled. run: runs a step in a thread."""
    while True:
        await asyncio.sleep(SAVE_SECONDS)
        await save_replies(run)


async def save_replies(run: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
    """Add the counts to the counters of the service; while the database does not respond, keep them."""
    counts = dict(+_replies)
    try:
        await run(partial(_add, counts))
    except Error as error:
        log.warning("the replies could not be counted yet", extra={"data": {"error": str(error)}})
    else:
        _replies.subtract(counts)


def read_reply_counts() -> Iterator[tuple[ReplyKind, int]]:
    """Yield the all-time number of replies of this installation by command and code."""
    for key, count in sorted(counters.all_time_counts(counters.SERVICE).items()):
        kind, _, rest = key.partition(".")
        if kind == PREFIX:
            command, code = rest.split(".")
            yield (command, code), count


def _add(counts: Mapping[ReplyKind, int]) -> None:
    counters.add(
        (counters.CounterKey(counters.SERVICE, counters.ALL_TIME, f"{PREFIX}.{command}.{code}"), count)
        for (command, code), count in counts.items()
    )
