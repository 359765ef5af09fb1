"""Suspended workspaces, in the memory of each process: clicks need no database (docs/decisions/0093)."""

import threading
import time

from django.db import InterfaceError, OperationalError, connection

from core.workspaces.models import Workspace

MAX_AGE_SECONDS = 5.0
# A click waits this long for a list that is too old; the query takes about a millisecond.
MAX_WAIT_SECONDS = 0.1


class SuspensionList:
    """The ids of all suspended workspaces, read by a thread when a click finds them too old."""

    def __init__(self) -> None:
        self._ids: frozenset[str] = frozenset()
        self._read_at = float("-inf")
        self._lock = threading.Lock()
        self._reader = threading.Thread()

    def __contains__(self, workspace_id: str) -> bool:
        if time.monotonic() - self._read_at > MAX_AGE_SECONDS:
            self._refresh()
        return workspace_id in self._ids

    def read(self) -> None:
        """Read the ids; keep the known ones while the database is unreachable."""
        try:
            suspended = Workspace.objects.filter(suspended_at__isnull=False)
            self._ids = frozenset(suspended.values_list("id", flat=True))
        except (OperationalError, InterfaceError):
            pass
        self._read_at = time.monotonic()

    def _refresh(self) -> None:
        with self._lock:
            if not self._reader.is_alive():
                self._reader = threading.Thread(target=self._read_and_close, name="suspensions", daemon=True)
                self._reader.start()
            reader = self._reader
        reader.join(MAX_WAIT_SECONDS)

    def _read_and_close(self) -> None:
        try:
            self.read()
        finally:
            connection.close()


suspended_workspaces = SuspensionList()
