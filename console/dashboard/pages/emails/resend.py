"""Resending an email from its page: once for each confirmation page, however often the button is pressed."""

import re

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest

from console.dashboard.ui.confirm import problem_message
from core.api.errors import Problem
from core.workspaces.account_status import refuse_suspended
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.models import Workspace
from emails.accept.idempotency import IdempotencyKey, find_response
from emails.accept.services import resend_email
from emails.models import Email, Entrance

NONCE = re.compile(r"[A-Za-z0-9_-]{1,64}")


def resend(request: HttpRequest, workspace: Workspace, email: Email) -> str | None:
    """Return the copy's id, the same for the same nonce; None, with a message, if the service refuses."""
    try:
        return resend_once(workspace, email, nonce=request.POST.get("nonce", ""))
    except Problem as problem:
        messages.error(request, problem_message(problem))
        return None


def resend_once(workspace: Workspace, email: Email, *, nonce: str) -> str:
    """Send a copy for a person, which is audited; return its id. Raises the errors of resend_email."""
    refuse_suspended(workspace)
    key = _idempotency_key(email, nonce)
    if response := find_response(workspace, key):
        return str(response.body["id"])
    with transaction.atomic():
        response = resend_email(workspace, email=email, key=key, limits=NO_LIMITS, entrance=Entrance.DASHBOARD)
        record_action(workspace, AuditAction.EMAIL_RESENT, about=email.id)
    return str(response.body["id"])


def _idempotency_key(email: Email, nonce: str) -> IdempotencyKey | None:
    """Return the idempotency key of a submitted confirmation; None for a nonce that no form of ours sends."""
    if not NONCE.fullmatch(nonce):
        return None
    return IdempotencyKey(f"dashboard {nonce}", operation="resend", fingerprint=email.id, is_strict=True)
