"""Send an email again from its page: once, however often the button is pressed."""

import re
import secrets

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext as _

from api.errors import Problem
from dashboard.ui.confirm import sentence_of
from emails.accept.idempotency import Key, replay
from emails.accept.services import resend_email
from emails.models import Email
from workspaces.errors import WorkspaceSuspended
from workspaces.models import Workspace

NONCE = re.compile(r"[A-Za-z0-9_-]{1,64}")


def new_nonce() -> str:
    """Return what makes a confirmation good for one copy."""
    return secrets.token_urlsafe(16)


def resend(request: HttpRequest, workspace: Workspace, email: Email, *, nonce: str) -> str | None:
    """Return the copy's id, the same for the same nonce; None, with a message, where it is refused."""
    try:
        return _resent(workspace, email, nonce=nonce)
    except Problem as refusal:
        messages.error(request, sentence_of(refusal))
        return None


def _resent(workspace: Workspace, email: Email, *, nonce: str) -> str:
    if workspace.is_suspended:
        raise WorkspaceSuspended(_("This workspace is suspended; nothing can be sent from it."))
    key = _key(email, nonce)
    answer = replay(workspace, key) or resend_email(workspace, email=email, key=key)
    return str(answer.body["id"])


def _key(email: Email, nonce: str) -> Key | None:
    """Return an idempotency key of the form, None for what no form of ours sends."""
    if not NONCE.fullmatch(nonce):
        return None
    return Key(f"dashboard {nonce}", operation="resend", fingerprint=email.id, strict=True)
