"""Counter of the submission server's replies for `/metrics` of web."""

import asyncio
from collections.abc import Iterator

from core.counters.process_counts import SAVE_SECONDS, Labels, ProcessCounts, RunStep, read_process_counts

KIND = "submission"
USUAL_REPLIES = [
    *(("AUTH", code) for code in ("235", "451", "454", "535")),
    *((command, code) for command in ("MAIL", "RCPT", "DATA") for code in ("250", "451", "550")),
]
# Replies of this process, by command and code.
replies = ProcessCounts(KIND)


def count_reply(command: str, reply: str) -> None:
    replies.count(command, reply[:3])


async def keep_saving_replies(run: RunStep) -> None:
    """Save the counts from time to time, until the task is cancelled."""
    while True:
        await asyncio.sleep(SAVE_SECONDS)
        await replies.save(run)


def read_reply_counts() -> Iterator[tuple[Labels, int]]:
    """Yield the all-time number of replies of this installation by command and code."""
    return read_process_counts(KIND, known=USUAL_REPLIES)
