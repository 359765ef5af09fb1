"""The audit log: who did what to a workspace, and from where (docs/decisions/0057).

Who acts is a fact of the request, not an argument of every act: the middleware remembers the request that this
thread serves, and `note` reads from it. Outside of one, in a task or a command, the service itself acts.
"""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from django.db import connection
from django.http import HttpRequest, HttpResponse

from lib.client_address import client_address
from workspaces.models import ApiKey, AuditEntry, User, Workspace

Act = AuditEntry.Act
Actor = AuditEntry.Actor

STAFF_SITE = "/admin/"
KEPT_DAYS = 400
PURGE_AT_ONCE = 5_000
PURGE = """
DELETE FROM workspaces_auditentry WHERE id IN (
    SELECT id FROM workspaces_auditentry WHERE created_at < now() - make_interval(days => %s)
     ORDER BY created_at LIMIT %s)
"""

_request: ContextVar[HttpRequest | None] = ContextVar("audited_request", default=None)


@dataclass(frozen=True)
class Party:
    """Who acts: the kind, a name that is still understood in a year, an IP address."""

    kind: str
    name: str = ""
    address: str | None = None


class AuditMiddleware:
    """Remembers the request while it is served; behind the authentication of sessions."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        token = _request.set(request)
        try:
            return self.get_response(request)
        finally:
            _request.reset(token)


def note(workspace: Workspace, act: Act, *, about: str = "", person: User | None = None) -> None:
    """Write down an act, in the transaction that does it.

    about: what was acted on, as people call it. Never a secret. person: who acts, where a link says it and no session.
    """
    party = _acting(person)
    AuditEntry.objects.create(
        workspace_id=workspace.id,
        act=act,
        about=_plain(about)[:320],
        actor_kind=party.kind,
        actor=_plain(party.name)[:320],
        address=party.address,
    )


def named_key(key: ApiKey) -> str:
    """Return how a key is told from others without its secret."""
    return f"{key.name} (pr_…{key.last_four})"


def expired_entries() -> Iterator[None]:
    """Delete what is older than KEPT_DAYS, in batches; yields after each."""
    deleted = PURGE_AT_ONCE
    while deleted == PURGE_AT_ONCE:
        with connection.cursor() as cursor:
            cursor.execute(PURGE, [KEPT_DAYS, PURGE_AT_ONCE])
            deleted = cursor.rowcount
        yield


def _acting(person: User | None) -> Party:
    request = _request.get()
    if request is None:
        return Party(Actor.SERVICE)
    found = client_address(request.META)
    address = str(found) if found else None
    key = getattr(request, "api_key", None)
    if key is not None:
        return Party(Actor.KEY, named_key(key), address)
    if request.user.is_authenticated:
        kind = Actor.STAFF if request.path_info.startswith(STAFF_SITE) else Actor.PERSON
        return Party(kind, request.user.email, address)
    return Party(Actor.PERSON, person.email, address) if person else Party(Actor.SERVICE, address=address)


def _plain(text: str) -> str:
    # PostgreSQL keeps no NUL.
    return text.replace("\0", "")
