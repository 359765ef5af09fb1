"""The clients of one run. A management key works below /v1/admin only: each workspace gets a temporary API key."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from postrider_client.cli.configuration.kinds import TEMPORARY_KEY, Place
from postrider_client.client import Postrider
from postrider_client.errors import PostriderError

MANAGEMENT_PREFIX = "pra_"
# A run that is killed cannot revoke its keys.
TEMPORARY_KEY_LIFETIME = timedelta(hours=1)


@dataclass
class Session:
    """scope: the scope of temporary API keys, read_only for a plan that is not applied."""

    manager: Postrider
    url: str
    is_management: bool
    scope: str
    _resources: ExitStack
    _places: dict[str, Place] = field(default_factory=dict)

    def place(self, workspace_id: str) -> Place:
        """Return the clients of a workspace."""
        if workspace_id not in self._places:
            client = self._temporary_client(workspace_id) if self.is_management else self.manager
            self._places[workspace_id] = Place(workspace_id, client, self.manager)
        return self._places[workspace_id]

    def _temporary_client(self, workspace_id: str) -> Postrider:
        expires_at = datetime.now(timezone.utc) + TEMPORARY_KEY_LIFETIME
        keys = self.manager.workspaces.keys
        key = keys.create(workspace_id, name=TEMPORARY_KEY, scope=self.scope, expires_at=expires_at)
        self._resources.callback(_revoke, self.manager, workspace_id, key.id)
        return self._resources.enter_context(Postrider(key.key, base_url=self.url))


@contextmanager
def open_session(client: Postrider, *, api_key: str, url: str, scope: str) -> Iterator[Session]:
    """Use a client for a run, and revoke the temporary keys at its end."""
    with client, ExitStack() as resources:
        yield Session(client, url, api_key.startswith(MANAGEMENT_PREFIX), scope, resources)


def _revoke(manager: Postrider, workspace_id: str, key_id: str) -> None:
    # Without a connection, the key expires.
    with suppress(PostriderError):
        manager.workspaces.keys.revoke(workspace_id, key_id)
