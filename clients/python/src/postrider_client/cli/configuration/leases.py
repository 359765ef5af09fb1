"""The lease of a run: two runs at the same time would both create what is missing."""

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Optional

from postrider_client.cli.output import note
from postrider_client.client import Postrider
from postrider_client.errors import ApiError, NotFound, PostriderError

IN_PROGRESS = "configuration_in_progress"
# A run that was killed has its lease for two minutes.
MAX_WAIT_SECONDS = 180.0
RENEW_SECONDS = 20.0
RETRY_SECONDS = 1.0


@dataclass
class RunLease:
    """The leases of a run. workspaces: ids, and None for the list of workspaces."""

    manager: Postrider
    workspaces: Sequence[Optional[str]]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _renewed_at: float = 0.0

    def renew(self) -> None:
        """Renew the leases if they are old. Raises PostriderError."""
        if time.monotonic() - self._renewed_at > RENEW_SECONDS:
            self._take(until=time.monotonic())

    def wait(self) -> None:
        """Take the leases, as soon as no other run has them. Raises PostriderError after MAX_WAIT_SECONDS."""
        self._take(until=time.monotonic() + MAX_WAIT_SECONDS)

    def release(self) -> None:
        for workspace_id in self.workspaces:
            # Without a connection, the lease expires.
            with suppress(PostriderError):
                self.manager.workspaces.release_configuration(token=self.token, workspace_id=workspace_id)

    def _take(self, *, until: float) -> None:
        for workspace_id in self.workspaces:
            self._take_one(workspace_id, until=until)
        self._renewed_at = time.monotonic()

    def _take_one(self, workspace_id: Optional[str], *, until: float) -> None:
        is_first = True
        while not self._is_taken(workspace_id, is_last_try=time.monotonic() >= until):
            if is_first:
                note("Another run changes the configuration. Waiting for it.")
            is_first = False
            time.sleep(RETRY_SECONDS)

    def _is_taken(self, workspace_id: Optional[str], *, is_last_try: bool) -> bool:
        """Try to take a lease; return whether no other run has it. Raises PostriderError."""
        try:
            self.manager.workspaces.lease_configuration(token=self.token, workspace_id=workspace_id)
        except ApiError as error:
            if error.code != IN_PROGRESS or is_last_try:
                raise
            return False
        return True


@contextmanager
def hold_lease(manager: Postrider, *, workspaces: Sequence[Optional[str]]) -> Iterator[RunLease]:
    """Hold the leases of a run. A service that has no leases is used without them. Raises PostriderError."""
    # In one order for all runs, which would otherwise wait for each other.
    lease = RunLease(manager, sorted(workspaces, key=lambda workspace_id: workspace_id or ""))
    try:
        lease.wait()
    except NotFound:
        lease = RunLease(manager, ())
    try:
        yield lease
    finally:
        lease.release()
