"""Each kind of API key (every scope, test keys, keys with limits), and the operations that a scope allows."""

from typing import Any

from core.workspaces.key_limits import read_limits
from core.workspaces.models import ApiKey, Workspace
from tests.conftest import Api, make_key

# The operations of sending_access.
SENDING = {
    ("POST", "/emails/send"),
    ("POST", "/emails/batch"),
    ("POST", "/emails/{}/resend"),
    ("DELETE", "/emails/{}"),
    ("PATCH", "/emails/{}"),
    ("GET", "/emails"),
    ("GET", "/emails/{}"),
    ("GET", "/emails/{}/events"),
    ("GET", "/emails/{}/attachments"),
    ("GET", "/emails/{}/attachments/{}"),
    ("GET", "/emails/export"),
    ("GET", "/streams"),
    ("GET", "/streams/{}"),
    ("GET", "/templates"),
    ("GET", "/templates/{}"),
    ("POST", "/templates/{}/preview"),
    ("GET", "/domains"),
    ("GET", "/domains/{}"),
    ("POST", "/inbound/emails"),
    ("GET", "/inbound/emails"),
    ("GET", "/inbound/emails/{}"),
    ("GET", "/inbound/emails/{}/raw"),
    ("GET", "/inbound/emails/{}/attachments/{}"),
    ("GET", "/me"),
}
# The operations of sending_only.
SENDING_ONLY = {("POST", "/emails/send"), ("POST", "/emails/batch"), ("GET", "/me")}
# The operations of approvals.
DECIDING = {("POST", "/emails/{}/approve"), ("POST", "/emails/{}/reject")}
APPROVALS = {
    *DECIDING,
    ("GET", "/emails"),
    ("GET", "/emails/{}"),
    ("GET", "/emails/{}/events"),
    ("GET", "/emails/{}/attachments"),
    ("GET", "/emails/{}/attachments/{}"),
    ("GET", "/me"),
}
# A file with all data of a person.
FULL_READING = {("GET", "/subject-exports/{}/download")}
READING_BY_POST = {("POST", "/templates/{}/preview"), ("POST", "/inbound/routes/match")}
# Networks that contain the address of Django's test client.
NETWORKS = ["127.0.0.0/8"]
# By kind: the options of make_key.
KEY_KINDS: dict[str, dict[str, Any]] = {
    **{scope: {"scope": scope} for scope in ApiKey.Scope.values},
    "test": {"scope": "sending_access", "limits": read_limits(is_test=True)},
    "limited_emails": {
        "scope": "sending_access",
        "limits": read_limits(domains=["bob.example"], templates=["welcome"]),
    },
    "limited_requests": {
        "scope": "full_access",
        "limits": read_limits(networks=NETWORKS, requests_per_second=1000),
    },
    "limited_admin": {"scope": "workspace_admin", "limits": read_limits(networks=NETWORKS, requests_per_second=1000)},
}


def api_of_kind(kind: str, workspace: Workspace) -> Api:
    """Return an API client with a new key of a kind."""
    return Api(make_key(workspace, **KEY_KINDS[kind]))


def scope_of(kind: str) -> str:
    return str(KEY_KINDS[kind]["scope"])


def allowed_scopes(method: str, path: str) -> set[str]:
    if (method, path) in DECIDING:
        return {"approvals"}
    scopes = {"full_access", "workspace_admin"}
    if (method == "GET" and (method, path) not in FULL_READING) or (method, path) in READING_BY_POST:
        scopes.add("read_only")
    if (method, path) in SENDING:
        scopes.add("sending_access")
    if (method, path) in SENDING_ONLY:
        scopes.add("sending_only")
    if (method, path) in APPROVALS:
        scopes.add("approvals")
    return scopes
