"""Group commit: emails of a workspace that are ready at the same time are accepted in one statement.

While PostgreSQL commits one group, the next one gathers. A single email does not wait (docs/decisions/0123).
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from core.lib.worker.groups import Groups
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import ApiKey
from interfaces.submission.drafts import SubmittedEmail
from interfaces.submission.replies import reply_to_error
from interfaces.submission.services import accept_together

MAX_EMAILS = 50
Step = Callable[[], list[str]]
# A workspace, the limits that its emails have in common, and their key if it has recipient rules.
Group = tuple[str, KeyLimits, str]
# An email to accept with a key.
ReadyEmail = tuple[ApiKey, SubmittedEmail]


class GroupCommit:
    """Ready emails of all sessions of a process, by workspace and limits of the key. run: runs a step in a thread."""

    def __init__(self, run: Callable[[Step], Awaitable[list[str]]]) -> None:
        self._run = run
        self._groups: Groups[Group, ReadyEmail, str] = Groups(self._accept_group, max_items=MAX_EMAILS)

    async def accept(self, key: ApiKey, submitted: SubmittedEmail) -> str:
        """Accept an email with those that are ready at the same time; return the reply, after the commit."""
        # Caps count for each key.
        owner = key.id if key.limits.rules else ""
        return await self._groups.process((key.workspace_id, key.limits, owner), (key, submitted))

    async def _accept_group(self, emails: Sequence[ReadyEmail]) -> list[str]:
        # The latest state of the workspace: the first email may have waited for longer.
        step = partial(accept_together, emails[-1][0], [submitted.with_key(key.id) for key, submitted in emails])
        try:
            return await self._run(step)
        except Exception as error:  # noqa: BLE001 - reply_to_error logs it
            return [reply_to_error(error)] * len(emails)
