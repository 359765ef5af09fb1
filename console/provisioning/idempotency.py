"""Idempotency keys of the management API (docs/decisions/0144).

A response may contain an API key, so it is stored sealed, for a day.
"""

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from rest_framework.request import Request
from rest_framework.response import Response

from console.provisioning.access import managing_key
from console.provisioning.models import ManagementResponse
from emails.accept.idempotency import IdempotencyKey, insert_key, read_header_key, replay

LIFETIME = timedelta(days=1)
CLAIM = """
INSERT INTO provisioning_managementresponse (caller, key, operation, fingerprint) VALUES (%s, %s, %s, %s)
ON CONFLICT (caller, key) DO NOTHING
"""

Action = Callable[..., Response]


def idempotent(action: Action) -> Action:
    """Decorate a view method: a repeat of an Idempotency-Key gets the response to the first request.

    The response is stored in the transaction of the request; an error stores nothing.
    """

    @functools.wraps(action)
    def respond_once(view: Any, request: Request, **path: str) -> Response:
        key = read_header_key(request, operation=view.action, about="/".join([view.basename, *path.values()]))
        if key is None:
            return action(view, request, **path)
        return _stored_response(request, key) or _respond(action, view, request, key=key, path=path)

    # For the OpenAPI document.
    respond_once.is_idempotent = True  # type: ignore[attr-defined]
    return respond_once


def delete_expired_responses() -> None:
    """Delete the keys and responses that are older than a day."""
    ManagementResponse.objects.filter(created_at__lt=Now() - LIFETIME).delete()


@transaction.atomic
def _respond(action: Action, view: Any, request: Request, *, key: IdempotencyKey, path: dict[str, str]) -> Response:
    is_new = insert_key(CLAIM, [managing_key(request).id, key.text, key.operation, key.fingerprint])
    if not is_new and (stored := _stored_response(request, key)):
        return stored
    response = action(view, request, **path)
    used = ManagementResponse.objects.get(caller=managing_key(request).id, key=key.text)
    used.seal_body({"status": response.status_code, "data": response.data})
    return response


def _stored_response(request: Request, key: IdempotencyKey) -> Response | None:
    used = ManagementResponse.objects.filter(caller=managing_key(request).id, key=key.text).first()
    if used is None:
        return None
    stored = replay(used, key, read_body=used.body)
    return Response(stored.body["data"], status=stored.body["status"], headers=stored.headers)
