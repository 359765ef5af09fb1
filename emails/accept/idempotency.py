"""Idempotency keys: a key makes one email, and every repetition gets its answer (CONTRACT section 3).

The first statement of the accepting transaction inserts the key. Of requests that come at once one
inserts it; the others wait for that transaction, then find the answer.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable
from rest_framework.request import Request

from emails.errors import IdempotencyInProgress, IdempotencyKeyReuse, InvalidIdempotencyKey
from emails.models import Acceptance
from lib.ids import to_uuid
from lib.worker.failpoints import failpoint
from workspaces.models import Workspace

FIELD = "idempotencyKey"
HEADER = "Idempotency-Key"
MAX_LENGTH = 255

CLAIM = """
INSERT INTO emails_acceptance (workspace_id, key, operation, fingerprint) VALUES (%s, %s, %s, %s)
ON CONFLICT (workspace_id, key) DO NOTHING
"""


@dataclass(frozen=True)
class Key:
    """A key as one request gives it; strict is the header's form, which refuses another body."""

    text: str
    operation: str
    fingerprint: str
    strict: bool


@dataclass(frozen=True)
class Answer:
    """What an accepting call answers: the body, and headers that tell of a replay."""

    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


def read_key(request: Request, *, operation: str, about: str = "") -> Key | None:
    """Return the request's key, from the header or the body.

    about: the id that the path names, where it does; with another one it is another request.
    A malformed field is None here: the serializer refuses it with the other fields.
    Raises InvalidIdempotencyKey for a malformed header, or two keys that differ.
    """
    body = cast("dict[str, Any]", request.data)
    given = body.get(FIELD)
    in_body = given if isinstance(given, str) and 1 <= len(given) <= MAX_LENGTH else None
    in_header = _header(request)
    if in_header and given is not None and given != in_header:
        raise InvalidIdempotencyKey(f"The {HEADER} header and the field {FIELD} differ; send one of them.")
    text = in_header or in_body
    if text is None:
        return None
    return Key(text=text, operation=operation, fingerprint=_fingerprint(body, about), strict=in_header is not None)


def replay(workspace: Workspace, key: Key | None) -> Answer | None:
    """Return the answer of a key that was used up already, None for a new one. Raises IdempotencyKeyReuse."""
    if key is None:
        return None
    used = Acceptance.objects.filter(workspace=workspace, key=key.text).first()
    return _replayed(used, key) if used else None


def claim_key(workspace: Workspace, key: Key | None) -> Answer | None:
    """Take the key for this transaction; return the answer of another that was faster.

    Raises IdempotencyInProgress when that other has not finished within the lock timeout, 5 s.
    """
    if key is None:
        return None
    values: list[Any] = [to_uuid(workspace.id, prefix="ws_"), key.text, key.operation, key.fingerprint]
    try:
        with connection.cursor() as cursor:
            cursor.execute(CLAIM, values)
            if cursor.rowcount == 1:
                return None
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise _in_progress() from error
        raise
    return replay(workspace, key)


def keep_answer(workspace: Workspace, key: Key | None, body: Mapping[str, Any]) -> None:
    """Write down what every repetition of the key will be answered; the last act of what accepts."""
    if key is not None:
        Acceptance.objects.filter(workspace=workspace, key=key.text).update(answer=dict(body))
    failpoint("emails.before_accept_commit")


def _header(request: Request) -> str | None:
    raw = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if raw is None:
        return None
    # The draft standard sends it as a quoted string; most clients send it bare.
    text = raw[1:-1] if len(raw) > 1 and raw[0] == raw[-1] == '"' else raw
    if not 1 <= len(text) <= MAX_LENGTH or not text.isascii() or not text.isprintable():
        raise InvalidIdempotencyKey(f"{HEADER} must have 1 to {MAX_LENGTH} printable ASCII characters.")
    return str(text)


def _fingerprint(body: Mapping[str, Any], about: str) -> str:
    rest = {name: value for name, value in body.items() if name != FIELD}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{about}{canonical}".encode()).hexdigest()


def _replayed(used: Acceptance, key: Key) -> Answer:
    differs = used.fingerprint != key.fingerprint
    if used.operation != key.operation or (key.strict and differs):
        raise IdempotencyKeyReuse("This idempotency key was used for another request; take a new one.")
    headers = {"Idempotent-Replayed": "true"}
    if differs:
        headers["Idempotency-Body-Mismatch"] = "true"
    return Answer(body=used.answer or {}, headers=headers)


def _in_progress() -> IdempotencyInProgress:
    return IdempotencyInProgress(
        "A request with this idempotency key is being accepted; ask again.", headers={"Retry-After": "1"}
    )
