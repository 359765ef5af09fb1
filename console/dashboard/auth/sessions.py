"""Sessions whose keys are stored as hashes: a copy of the database signs nobody in (docs/security.md, T23).

Each session of an account has a row with its browser and client address, by which people recognise and end it.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import SESSION_KEY, update_session_auth_hash
from django.contrib.sessions.backends import db
from django.contrib.sessions.base_session import AbstractBaseSession
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone

from core.lib.sql import run
from core.workspaces.audit import AuditAction, record_about_account
from core.workspaces.models import User

# The column has 40 characters: 240 bits in base64.
HASH_BYTES = 30
STORED_KEY = re.compile(r"[\w-]{40}", re.ASCII)
MAX_AGENT = 300
# The account may have been deleted meanwhile.
DESCRIBE = """
INSERT INTO workspaces_accountsession (session_id, user_id, address, agent)
SELECT %s, id, %s, %s FROM workspaces_user WHERE id = %s
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True)
class Client:
    """The client of a request: its address, and its User-Agent."""

    address: str | None = None
    agent: str = ""


class SessionStore(db.SessionStore):
    """Django's database sessions. The cookie has the key, the table its hash.

    client: set by the middleware of sessions.
    """

    client = Client()

    def save(self, must_create: bool = False) -> None:  # noqa: FBT001, FBT002 - of Django
        super().save(must_create)
        if user_id := self.get(SESSION_KEY):
            agent = self.client.agent[:MAX_AGENT].replace("\0", "")
            run(DESCRIBE, [stored_key(self.session_key), self.client.address, agent, user_id])

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


@transaction.atomic
def end_session(user: User, *, key: str) -> bool:
    """End a session of an account by its stored key; return whether there was one."""
    # PostgreSQL refuses some characters.
    if not STORED_KEY.fullmatch(key):
        return False
    _count, deleted = Session.objects.filter(session_key=key, details__user=user).delete()
    if deleted:
        record_about_account(user, AuditAction.SESSION_ENDED)
    return bool(deleted)


@transaction.atomic
def end_other_sessions(request: HttpRequest, user: User) -> None:
    """End all sessions of an account except for that of the request, also those without details."""
    User.objects.filter(pk=user.pk).update(sessions_ended_at=Now())
    user.refresh_from_db(fields=["sessions_ended_at"])
    others = Session.objects.filter(details__user=user)
    others.exclude(session_key=stored_key(request.session.session_key)).delete()
    update_session_auth_hash(request, user)
    record_about_account(user, AuditAction.OTHER_SESSIONS_ENDED)
