"""Sessions whose keys are stored as hashes: a copy of the database signs nobody in (docs/security.md, T23)."""

import base64
import hashlib
from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.base_session import AbstractBaseSession
from django.contrib.sessions.models import Session
from django.utils import timezone

# The column has 40 characters: 240 bits in base64.
HASH_BYTES = 30


class SessionStore(db.SessionStore):
    """Django's database sessions. The cookie has the key, the table its hash."""

    def _get_session_from_db(self) -> Session | None:
        found = Session.objects.filter(session_key=stored_key(self.session_key), expire_date__gt=timezone.now()).first()
        if found is None:
            self._session_key = None
        return found

    def exists(self, session_key: str) -> bool:
        return bool(super().exists(stored_key(session_key)))

    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        row = super().create_model_instance(data)
        row.session_key = stored_key(row.session_key)
        return row

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            super().delete(stored_key(key))


def stored_key(session_key: str | None) -> str:
    digest = hashlib.sha256((session_key or "").encode()).digest()[:HASH_BYTES]
    return base64.urlsafe_b64encode(digest).decode()
