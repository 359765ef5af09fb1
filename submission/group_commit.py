"""Group commit: emails of a workspace that are ready at the same time are accepted in one statement.

While PostgreSQL commits one group, the next one gathers. A single email does not wait (docs/decisions/0123).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from submission.drafts import SubmittedEmail
from submission.replies import reply_to_error
from submission.services import accept_together
from workspaces.models import Workspace

MAX_EMAILS = 50
Step = Callable[[], list[str]]


@dataclass(frozen=True)
class ReadyEmail:
    """An email to accept, and the reply that its session waits for."""

    workspace: Workspace
    submitted: SubmittedEmail
    reply: asyncio.Future[str]


class GroupCommit:
    """Ready emails of all sessions of a process, by workspace. run: runs a step in a thread."""

    def __init__(self, run: Callable[[Step], Awaitable[list[str]]]) -> None:
        self._run = run
        self._ready: dict[str, list[ReadyEmail]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, workspace: Workspace, submitted: SubmittedEmail) -> str:
        """Accept an email with those that are ready at the same time; return the reply, after the commit."""
        email = ReadyEmail(workspace, submitted, asyncio.get_running_loop().create_future())
        if workspace.id in self._ready:
            self._ready[workspace.id].append(email)
        else:
            self._ready[workspace.id] = [email]
            task = asyncio.create_task(self._accept_ready(workspace.id))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await email.reply

    async def _accept_ready(self, workspace_id: str) -> None:
        """Accept one group after another until no email of the workspace is ready."""
        ready = self._ready[workspace_id]
        while ready:
            group, ready[:MAX_EMAILS] = ready[:MAX_EMAILS], []
            replies = await self._accept_group(group)
            for email, reply in zip(group, replies, strict=True):
                # A session that has ended does not wait any more.
                if not email.reply.done():
                    email.reply.set_result(reply)
        del self._ready[workspace_id]

    async def _accept_group(self, group: Sequence[ReadyEmail]) -> list[str]:
        # The latest state of the workspace: the first email may have waited for longer.
        step = partial(accept_together, group[-1].workspace, [email.submitted for email in group])
        try:
            return await self._run(step)
        except Exception as error:  # noqa: BLE001 - reply_to_error logs it
            return [reply_to_error(error)] * len(group)
