"""Whose request it is, read from its head before a thread answers it."""

import hashlib
import re
from typing import Any

from django.conf import settings

from core.lib.network.client_address import client_address, client_network
from core.workspaces.api.authentication import workspace_of_key
from core.workspaces.api_key_secrets import KEY_PATTERN

KEY = re.compile(KEY_PATTERN.pattern.encode())
# Other credentials: Basic authentication, a session of the dashboard.
CREDENTIALS = re.compile(
    rb"\r\n(?:authorization:[ \t]*|cookie:[^\r\n]*\b%b=)([^\r\n;]+)" % settings.SESSION_COOKIE_NAME.encode(),
    re.IGNORECASE,
)
FORWARDED_FOR = re.compile(rb"\r\nx-forwarded-for:[ \t]*([^\r\n]*)", re.IGNORECASE)


def share_of(head: bytes, client: Any) -> str:
    """Return the workspace of a request's key, else a hash of its credentials, else its network.

    A key that this process has not accepted before counts by itself, so that nobody can take the share of a workspace
    with the public part of its key.
    """
    if match := KEY.search(head):
        return workspace_of_key(match[0].decode()) or hashlib.sha256(match[0]).hexdigest()
    if credentials := CREDENTIALS.search(head):
        return hashlib.sha256(credentials[1]).hexdigest()
    peer = str(client[0]) if isinstance(client, tuple) else ""
    forwarded = b",".join(FORWARDED_FOR.findall(head)).decode("latin-1")
    address = client_address({"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded})
    return client_network(address) if address else "unknown"
