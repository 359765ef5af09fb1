"""Group commit: emails of a workspace that are ready at the same time are accepted in one statement.

While PostgreSQL commits one group, the next one gathers. A single email does not wait (docs/decisions/0123).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import ApiKey
from interfaces.submission.drafts import SubmittedEmail
from interfaces.submission.replies import reply_to_error
from interfaces.submission.services import accept_together

MAX_EMAILS = 50
Step = Callable[[], list[str]]
# A workspace, and the limits that its emails have in common.
Group = tuple[str, KeyLimits]


@dataclass(frozen=True)
class ReadyEmail:
    """An email to accept with a key, and the reply that its session waits for."""

    key: ApiKey
    submitted: SubmittedEmail
    reply: asyncio.Future[str]


class GroupCommit:
    """Ready emails of all sessions of a process, by workspace and limits of the key. run: runs a step in a thread."""

    def __init__(self, run: Callable[[Step], Awaitable[list[str]]]) -> None:
        self._run = run
        self._ready: dict[Group, list[ReadyEmail]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, key: ApiKey, submitted: SubmittedEmail) -> str:
        """Accept an email with those that are ready at the same time; return the reply, after the commit."""
        email = ReadyEmail(key, submitted, asyncio.get_running_loop().create_future())
        group = key.workspace_id, key.limits
        if group in self._ready:
            self._ready[group].append(email)
        else:
            self._ready[group] = [email]
            task = asyncio.create_task(self._accept_ready(group))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await email.reply

    async def _accept_ready(self, group: Group) -> None:
        """Accept up to MAX_EMAILS after another until no email of the group is ready."""
        ready = self._ready[group]
        while ready:
            emails, ready[:MAX_EMAILS] = ready[:MAX_EMAILS], []
            replies = await self._accept_group(emails)
            for email, reply in zip(emails, replies, strict=True):
                # A session that has ended does not wait any more.
                if not email.reply.done():
                    email.reply.set_result(reply)
        del self._ready[group]

    async def _accept_group(self, emails: Sequence[ReadyEmail]) -> list[str]:
        # The latest state of the workspace: the first email may have waited for longer.
        step = partial(accept_together, emails[-1].key, [email.submitted for email in emails])
        try:
            return await self._run(step)
        except Exception as error:  # noqa: BLE001 - reply_to_error logs it
            return [reply_to_error(error)] * len(emails)
