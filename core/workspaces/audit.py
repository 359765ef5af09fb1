"""Audit log: actions on a workspace, with actor and client address (docs/decisions/0057).

The actor comes from the current request, not from arguments: AuditMiddleware stores the request in a context variable
that `record_action` reads. Outside of a request, in a task or a command, the actor is the service.
"""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from core.lib.coded_texts import CodedText
from core.lib.network.client_address import client_address
from core.lib.sql import delete_batches
from core.workspaces.models import AuditEntry, User, Workspace

AuditAction = AuditEntry.Action
ActorKind = AuditEntry.ActorKind

STAFF_SITE = "/admin/"
RETENTION_DAYS = 400
PURGE_BATCH = 5_000
PURGE = """
DELETE FROM workspaces_auditentry WHERE id IN (
    SELECT id FROM workspaces_auditentry WHERE created_at < now() - make_interval(days => %s)
     ORDER BY created_at LIMIT %s)
"""

_request: ContextVar[HttpRequest | None] = ContextVar("audited_request", default=None)


@dataclass(frozen=True)
class Actor:
    """The actor of an audit entry: its kind, a permanent name, and an IP address."""

    kind: str
    name: str = ""
    address: str | None = None


class AuditMiddleware:
    """Stores the current request for `record_action`. Must come after the session authentication."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        token = _request.set(request)
        try:
            return self.get_response(request)
        finally:
            _request.reset(token)


def record_action(
    workspace: Workspace | None, action: AuditAction, *, about: str = "", person: User | None = None
) -> None:
    """Add an entry to the audit log, in the transaction of the action.

    workspace: None for an action on the installation, which only staff see.
    about: a readable name of the object or a text with its code, never a secret.
    person: the actor, if identified by a link and not a session.
    """
    actor = current_actor(person)
    AuditEntry.objects.create(
        workspace=workspace,
        act=action,
        about=_without_nul(about)[:320],
        about_code=about.to_json() if isinstance(about, CodedText) else None,
        actor_kind=actor.kind,
        actor=_without_nul(actor.name)[:320],
        address=actor.address,
    )


def record_about_account(user: User, action: AuditAction, *, about: str = "") -> None:
    """Add an entry about a user to the audit log of each of their workspaces.

    Actions of staff, and of those without a workspace, have an entry about the installation as well: it stays if the
    workspaces are deleted.
    """
    if user.is_staff or not user.workspaces.exists():
        record_action(None, action, about=about, person=user)
    record_for_workspaces(user, action, about=about)


def record_for_workspaces(user: User, action: AuditAction, *, about: str = "") -> None:
    """Add an entry about a user to the audit log of each of their workspaces."""
    for workspace in user.workspaces.all():
        record_action(workspace, action, about=about, person=user)


def delete_expired_entries() -> Iterator[None]:
    """Delete entries older than RETENTION_DAYS in batches; yields after each batch."""
    return delete_batches(PURGE, [RETENTION_DAYS, PURGE_BATCH], size=PURGE_BATCH)


def current_actor(person: User | None = None) -> Actor:
    """Return who acts in this request. person: as in record_action."""
    request = _request.get()
    if request is None:
        return Actor(ActorKind.SERVICE)
    ip_address = client_address(request.META)
    address = str(ip_address) if ip_address else None
    key = getattr(request, "api_key", None)
    if key is not None:
        return Actor(ActorKind.KEY, key.label, address)
    if request.user.is_authenticated:
        kind = ActorKind.STAFF if request.path_info.startswith(STAFF_SITE) else ActorKind.PERSON
        return Actor(kind, request.user.email, address)
    return Actor(ActorKind.PERSON, person.email, address) if person else Actor(ActorKind.SERVICE, address=address)


def _without_nul(text: str) -> str:
    # PostgreSQL text cannot contain NUL.
    return text.replace("\0", "")
