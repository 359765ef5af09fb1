"""Idempotency keys: one key accepts one request, and every repeat gets its response.

See docs/specification.md, Idempotency. The first statement of the accepting transaction inserts the key. Of
concurrent requests one inserts it; the others wait for that transaction, then read its response.
"""

import hashlib
import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable
from rest_framework.request import Request

from core.lib.ids import to_uuid
from core.lib.worker.failpoints import failpoint
from core.workspaces.api.authentication import key_of
from core.workspaces.key_limits import NO_LIMITS, KeyLimits
from core.workspaces.models import ApiKey, Workspace
from emails.errors import IdempotencyInProgress, IdempotencyKeyReuse, InvalidIdempotencyKey
from emails.models import Acceptance

BODY_FIELD = "idempotencyKey"
HEADER = "Idempotency-Key"
MAX_LENGTH = 255
# A control character, which the header cannot contain.
TEST_PREFIX = "test\x1f"

CLAIM = """
INSERT INTO emails_acceptance (workspace_id, key, operation, fingerprint) VALUES (%s, %s, %s, %s)
ON CONFLICT (workspace_id, key) DO NOTHING
"""


@dataclass(frozen=True)
class IdempotencyKey:
    """The key of one request. A strict key, from the header, refuses a different body."""

    text: str
    operation: str
    fingerprint: str
    is_strict: bool


@dataclass(frozen=True)
class StoredResponse:
    """The response to an accepted request: the body, and the headers of a replay."""

    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


def read_key(request: Request, *, operation: str, about: str = "") -> IdempotencyKey | None:
    """Return the idempotency key of a request, from the header or the body.

    about: the id in the path, if any; it is part of the fingerprint.
    Returns None for a malformed field, which the serializer rejects together with the other fields.
    Raises InvalidIdempotencyKey for a malformed header, or for two different keys.
    """
    body = cast("dict[str, Any]", request.data)
    body_key = body.get(BODY_FIELD)
    in_body = body_key if isinstance(body_key, str) and 1 <= len(body_key) <= MAX_LENGTH else None
    in_header = _header(request)
    if in_header and body_key is not None and body_key != in_header:
        raise InvalidIdempotencyKey(f"The {HEADER} header and the {BODY_FIELD} field differ. Send only one of them.")
    text = in_header or in_body
    if text is None:
        return None
    return IdempotencyKey(
        text=stored_text(text, key_of(request).limits),
        operation=operation,
        fingerprint=_fingerprint_without_key(body, about),
        is_strict=in_header is not None,
    )


def read_header_key(request: Request, *, operation: str, about: str = "") -> IdempotencyKey | None:
    """Return the idempotency key of a request without a key in its body; any JSON body.

    Raises InvalidIdempotencyKey.
    """
    text = _header(request)
    if text is None:
        return None
    fingerprint = _fingerprint(request.data, about)
    # A management key has no limits.
    limits = request.auth.limits if isinstance(request.auth, ApiKey) else NO_LIMITS
    text = stored_text(text, limits)
    return IdempotencyKey(text=text, operation=operation, fingerprint=fingerprint, is_strict=True)


def stored_text(text: str, limits: KeyLimits) -> str:
    """Return the text under which an idempotency key is stored: test emails do not use up those of live ones."""
    return f"{TEST_PREFIX}{text}" if limits.is_test else text


def find_response(workspace: Workspace, key: IdempotencyKey | None) -> StoredResponse | None:
    """Return the response stored for a used key, None for a new key. Raises IdempotencyKeyReuse."""
    if key is None:
        return None
    used = Acceptance.objects.filter(workspace=workspace, key=key.text).first()
    return replay(used, key, read_body=lambda: used.answer or {}) if used else None


def claim_key(workspace: Workspace, key: IdempotencyKey | None) -> StoredResponse | None:
    """Claim the key for this transaction, or return the response of the request that claimed it first.

    Raises IdempotencyInProgress when that request has not finished within the lock timeout, 5 s.
    """
    if key is None:
        return None
    is_new = insert_key(CLAIM, [to_uuid(workspace.id, prefix="ws_"), key.text, key.operation, key.fingerprint])
    return None if is_new else find_response(workspace, key)


def insert_key(sql: str, values: Sequence[Any]) -> bool:
    """Insert a key with a statement that skips an existing one; return whether it was new.

    Raises IdempotencyInProgress when another transaction that inserts it takes longer than the lock timeout.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            return bool(cursor.rowcount == 1)
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise _in_progress() from error
        raise


def store_response(workspace: Workspace, key: IdempotencyKey | None, body: Mapping[str, Any]) -> None:
    """Store the response for repeats of the key: the last statement of the accepting transaction."""
    if key is not None:
        Acceptance.objects.filter(workspace=workspace, key=key.text).update(answer=dict(body))
    failpoint("emails.before_accept_commit")


def _header(request: Request) -> str | None:
    raw = request.META.get("HTTP_IDEMPOTENCY_KEY")
    return None if raw is None else parse_key_header(raw)


def parse_key_header(raw: str) -> str:
    """Return the idempotency key in a header's value. Raises InvalidIdempotencyKey."""
    # The IETF draft defines a quoted string; most clients send the bare key.
    text = raw[1:-1] if len(raw) > 1 and raw[0] == raw[-1] == '"' else raw
    if not 1 <= len(text) <= MAX_LENGTH or not text.isascii() or not text.isprintable():
        raise InvalidIdempotencyKey(f"{HEADER} must be 1 to {MAX_LENGTH} printable ASCII characters long.")
    return text


def _fingerprint_without_key(body: Mapping[str, Any], about: str) -> str:
    return _fingerprint({name: value for name, value in body.items() if name != BODY_FIELD}, about)


def _fingerprint(body: Any, about: str) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(unicodedata.normalize("NFC", f"{about}{canonical}").encode()).hexdigest()


class UsedKey(Protocol):
    """A stored idempotency key."""

    operation: Any
    fingerprint: Any


def replay(used: UsedKey, key: IdempotencyKey, *, read_body: Callable[[], dict[str, Any]]) -> StoredResponse:
    """Return the stored body as the response to a repeat. Raises IdempotencyKeyReuse for a different request."""
    differs = used.fingerprint != key.fingerprint
    if used.operation != key.operation or (key.is_strict and differs):
        raise IdempotencyKeyReuse("This idempotency key was used for a different request. Use a new key.")
    headers = {"Idempotent-Replayed": "true"}
    if differs:
        headers["Idempotency-Body-Mismatch"] = "true"
    return StoredResponse(body=read_body(), headers=headers)


def _in_progress() -> IdempotencyInProgress:
    return IdempotencyInProgress(
        "A request with this idempotency key is still in progress. Retry later.", headers={"Retry-After": "1"}
    )
