"""Who is calling: the API key of the Authorization header.

A key is read from the database at most once a second per process, so that a busy caller costs no query
and a revoked key is refused within one second (CONTRACT section 2).
"""

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from workspaces.errors import ExpiredApiKey, InvalidApiKey, MissingApiKey, RevokedApiKey, Unauthenticated
from workspaces.models import ApiKey, Workspace
from workspaces.secrets import hash_secret, matches, read_key
from workspaces.throttling import note_failure

CACHE_SECONDS = 1.0
CACHE_SIZE = 10_000
USED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class _Entry:
    key: ApiKey | None
    read_at: float


class KeyCache:
    """Keys by id, each for CACHE_SECONDS. Ids that do not exist are not kept: they could fill it."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.Lock()

    def get(self, key_id: str) -> ApiKey | None:
        entry = self._entries.get(key_id)
        if entry and time.monotonic() - entry.read_at < CACHE_SECONDS:
            return entry.key
        key = ApiKey.objects.select_related("workspace").filter(id=key_id).first()
        if key:
            self._keep(key)
        return key

    def _keep(self, key: ApiKey) -> None:
        with self._lock:
            if len(self._entries) >= CACHE_SIZE:
                self._entries.clear()
            self._entries[key.id] = _Entry(key, time.monotonic())

    def clear(self) -> None:
        self._entries.clear()


cache = KeyCache()


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer pr_…`; request.auth is the ApiKey, request.user stays None."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey]:
        try:
            return None, authenticated_key(request.META.get("HTTP_AUTHORIZATION", ""))
        except Unauthenticated:
            note_failure(request)
            raise

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="postrider"'


def authenticated_key(header: str) -> ApiKey:
    """Return the key that a header names. Raises one of the four refusals of CONTRACT's 401."""
    scheme, _, text = header.strip().partition(" ")
    if not header.strip():
        raise MissingApiKey("Send your API key as Authorization: Bearer pr_….")
    given = read_key(text.strip()) if scheme.lower() == "bearer" else None
    if given is None:
        raise InvalidApiKey("This is not an API key; it must be Bearer pr_… as shown when it was made.")
    key = cache.get(given.id)
    # An unknown id costs the same comparison as a wrong secret.
    if not matches(given.secret, key.secret_hash if key else hash_secret("")) or key is None:
        raise InvalidApiKey("This API key does not exist.")
    _refuse_ended(key)
    _note_use(key)
    return key


def _refuse_ended(key: ApiKey) -> None:
    if key.is_revoked:
        raise RevokedApiKey("This API key was revoked.")
    if key.expires_at and key.expires_at <= datetime.now(UTC):
        raise ExpiredApiKey(f"This API key expired at {key.expires_at.isoformat()}.")


def _note_use(key: ApiKey) -> None:
    """Write lastUsedAt at most once a minute, whatever the number of processes."""
    if key.last_used_at and datetime.now(UTC) - key.last_used_at < USED_EVERY:
        return
    unused = Q(last_used_at=None) | Q(last_used_at__lt=Now() - USED_EVERY)
    ApiKey.objects.filter(unused, id=key.id).update(last_used_at=Now())
    key.last_used_at = datetime.now(UTC)


def workspace_of(request: Request) -> Workspace:
    key = request.auth
    assert isinstance(key, ApiKey)
    return key.workspace
