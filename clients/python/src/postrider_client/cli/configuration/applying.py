"""Makes the changes of a plan, one after the other, and keeps the secrets that the service shows once."""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import click

from postrider_client.answers import Webhook
from postrider_client.cli.configuration.kinds import Kind, Place, arguments
from postrider_client.cli.configuration.planning import ARCHIVE, CREATE, DELETE, Step
from postrider_client.cli.configuration.session import Session
from postrider_client.workspace_answers import ManagedKey


@dataclass(frozen=True)
class NewSecret:
    """An API key, or the secret of a webhook, which cannot be read again."""

    workspace: str
    kind: str
    name: str
    secret: str = field(repr=False)

    @property
    def raw(self) -> dict[str, str]:
        return {"workspace": self.workspace, "kind": self.kind, "name": self.name, "secret": self.secret}


@dataclass
class Applier:
    """Makes changes. keep_secret: called with each secret at once, before the next change."""

    session: Session
    keep_secret: Callable[[NewSecret], None]
    _created: dict[str, str] = field(default_factory=dict)

    def perform(self, step: Step) -> None:
        """Make one change. Raises PostriderError."""
        if step.kind is None:
            self._perform_on_workspace(step)
            return
        workspace_id = step.target.workspace_id or self._created[step.target.label]
        result = _perform(step, step.kind, self.session.place(workspace_id))
        secret = _secret_of(result)
        if secret:
            self.keep_secret(NewSecret(step.target.label, step.kind.name, step.label, secret))

    def _perform_on_workspace(self, step: Step) -> None:
        workspaces = self.session.manager.workspaces
        if step.action == CREATE:
            self._created[step.target.label] = workspaces.create(**arguments(step.values)).id
        else:
            workspaces.update(step.object_id, **arguments(step.values))


def _perform(step: Step, kind: Kind, place: Place) -> Any:
    if step.action == CREATE:
        return kind.create(place, step.values)
    if step.action in (DELETE, ARCHIVE):
        return kind.delete(place, step.object_id)
    kind.update(place, step.object_id, step.values)
    return None


def _secret_of(result: Any) -> Optional[str]:
    if isinstance(result, Webhook):
        return result.secret
    return result.key if isinstance(result, ManagedKey) else None


@contextmanager
def secrets_file(path: str) -> Iterator[Callable[[NewSecret], None]]:
    """Open a file that only the user can read; each secret is appended as a line of JSON.

    Raises click.ClickException for a file that others can read, or that is no regular file.
    """
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    with os.fdopen(handle, "a", encoding="utf-8") as file:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode) or mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise click.ClickException(f"{path} must be a file that only you can read. Run `chmod 600 {path}`.")

        def append(secret: NewSecret) -> None:
            file.write(json.dumps(secret.raw, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(handle)

        yield append
