"""Stream services: create, change, archive, and find the stream of an email. See docs/decisions/0176."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Coalesce, Now

from core.api.errors import NotFound, Problem
from core.lib.coded_texts import CodedText
from core.lib.ttl_cache import TTLCache
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import PlanLimitReached, StreamNotAllowed
from core.workspaces.key_limits import STREAM, KeyLimits
from core.workspaces.models import Workspace
from streams.errors import (
    InvalidStream,
    StreamArchived,
    StreamExists,
    StreamNotFound,
    StreamPaused,
    TransportRouteNotAllowed,
)
from streams.models import MAIN, Stream, main_stream

MAX_STREAMS = 20
# Settings that the service document demands of every workspace, with the fields' names on the wire.
FIXED_IN_MAIN = {
    "kind": "kind",
    "unsubscribe": "unsubscribe",
    "scope": "scope",
    "own_bounces": "ownBounces",
    "ignores_unsubscribes": "ignoresUnsubscribes",
}
# A change is in force within a second, as the revocation of an API key.
streams_cache: TTLCache[str, dict[str, Stream]] = TTLCache()


def _known_stream(workspace: Workspace, slug: str) -> Stream | None:
    """Return a stream, at most a second old unless it is missing or accepts no emails."""
    stream = (streams_cache.get(workspace.id) or {}).get(slug)
    if stream is None or not stream.accepts_emails:
        streams = read_streams(workspace)
        streams_cache.set(workspace.id, streams)
        stream = streams.get(slug)
    return stream


def read_streams(workspace: Workspace) -> dict[str, Stream]:
    """Return the streams of a workspace by slug, `main` first."""
    return {MAIN: main_stream(workspace)} | {
        stream.slug: stream for stream in Stream.objects.filter(workspace=workspace)
    }


def get_stream(workspace: Workspace, slug: str) -> Stream:
    """Return a stream. Raises NotFound."""
    stream = read_streams(workspace).get(slug)
    if stream is None:
        raise NotFound
    return stream


def find_sending_streams(
    workspace: Workspace, slugs: Collection[str | None], limits: KeyLimits
) -> dict[str | None, Stream | Problem]:
    """Return the streams of emails to accept by slug, or the problems of sending in them.

    Without a slug, that of an email is the only stream of the key, else `main`.
    Problems are StreamNotAllowed, StreamNotFound, StreamArchived, StreamPaused.
    """
    default = limits.streams[0] if len(limits.streams) == 1 else MAIN
    return {slug: _find_sending_stream(workspace, slug or default, limits) for slug in slugs}


def _find_sending_stream(workspace: Workspace, slug: str, limits: KeyLimits) -> Stream | Problem:
    if limits.streams and slug not in limits.streams:
        detail = f"This API key can send in these streams only: {', '.join(limits.streams)}. Use another key."
        return StreamNotAllowed(detail, field="stream", stream=slug, allowedStreams=list(limits.streams))
    stream = _known_stream(workspace, slug)
    if stream is None:
        return _not_found(slug)
    if stream.archived_at:
        return StreamArchived(CodedText("streams.archived", name=repr(slug)), field="stream", stream=slug)
    if stream.paused_at:
        return StreamPaused(CodedText("streams.paused", name=repr(slug), reason=stream.pause_reason), stream=slug)
    return stream


def existing_stream(workspace: Workspace, slug: str) -> Stream:
    """Return a stream that a suppression or a webhook names. Raises StreamNotFound."""
    stream = read_streams(workspace).get(slug)
    if stream is None:
        raise _not_found(slug)
    return stream


def _not_found(slug: str) -> StreamNotFound:
    return StreamNotFound(CodedText("streams.not_found", name=repr(slug)), field="stream", stream=slug)


def load_streams(names: Collection[tuple[str, str]]) -> dict[tuple[str, str], Stream]:
    """Return the rows of streams by workspace id and slug, `main` only among others: usually no query is needed."""
    if all(slug == MAIN for _, slug in names):
        return {}
    rows = Stream.objects.filter(workspace__in={workspace_id for workspace_id, _ in names})
    return {(row.workspace_id, row.slug): row for row in rows}


def suppressed_stream(workspace_id: str, slug: str, reason: str) -> str:
    """Return the stream that a suppression from an email of a stream blocks, empty for the whole workspace."""
    if slug == MAIN:
        return ""
    stream = Stream.objects.filter(workspace=workspace_id, slug=slug).first()
    return stream.suppressed_stream(reason) if stream else ""


@transaction.atomic
def create_stream(workspace: Workspace, *, slug: str, **values: Any) -> Stream:
    """Create a stream. Raises StreamExists, InvalidStream, TransportRouteNotAllowed, PlanLimitReached."""
    check_transport_route(values.get("transport_route", ""), workspace_id=workspace.id)
    _check_content_retention(values.get("content_retention"), workspace)
    is_bulk = values.get("kind") == Stream.Kind.BULK
    values.setdefault("public", is_bulk)
    values.setdefault("priority", Stream.Priority.LOW if is_bulk else Stream.Priority.NORMAL)
    values.setdefault("ignores_unsubscribes", values.get("unsubscribe") == Stream.Unsubscribe.NONE)
    Workspace.objects.select_for_update(no_key=True).get(id=workspace.id)
    streams = Stream.objects.filter(workspace=workspace)
    if slug == MAIN or streams.filter(slug=slug).exists():
        raise StreamExists(CodedText("streams.exists", name=repr(slug)), stream=slug)
    if streams.exclude(slug=MAIN).count() >= MAX_STREAMS - 1:
        detail = CodedText("streams.limit", limit=MAX_STREAMS)
        raise PlanLimitReached(detail, resource="streams", limit=MAX_STREAMS)
    number = (streams.aggregate(last=Max("number"))["last"] or 0) + 1
    stream = Stream(workspace=workspace, slug=slug, number=number, **values)
    _check(stream)
    stream.save(force_insert=True)
    record_action(workspace, AuditAction.STREAM_CREATED, about=slug)
    return _refreshed(stream)


@transaction.atomic
def update_stream(workspace: Workspace, slug: str, *, changes: dict[str, Any]) -> Stream:
    """Change a stream. Raises NotFound, InvalidStream, TransportRouteNotAllowed.

    Another content_retention holds for accepted emails, too (emails.upkeep.content_removal).
    """
    check_transport_route(changes.get("transport_route", ""), workspace_id=workspace.id)
    _check_content_retention(changes.get("content_retention"), workspace)
    stream = _locked(workspace, slug)
    if changes.get("content_retention", stream.content_retention) != stream.content_retention:
        changes = changes | {"content_changed_at": Now()}
    for name, value in changes.items():
        setattr(stream, name, value)
    _check(stream)
    stream.save(update_fields=list(changes))
    record_action(workspace, AuditAction.STREAM_CHANGED, about=slug)
    return _refreshed(stream)


@transaction.atomic
def archive_stream(workspace: Workspace, slug: str) -> Stream:
    """Archive a stream: it accepts no more emails; accepted ones are sent. Raises NotFound, InvalidStream."""
    if slug == MAIN:
        raise InvalidStream(CodedText("streams.main_stays"), field="id")
    stream = _locked(workspace, slug)
    if stream.archived_at is None:
        Stream.objects.filter(id=stream.id).update(archived_at=Now())
        record_action(workspace, AuditAction.STREAM_ARCHIVED, about=slug)
    return _refreshed(stream)


@transaction.atomic
def unarchive_stream(workspace: Workspace, slug: str) -> Stream:
    """Let an archived stream accept emails again. Raises NotFound."""
    stream = _locked(workspace, slug)
    if stream.archived_at:
        Stream.objects.filter(id=stream.id).update(archived_at=None)
        record_action(workspace, AuditAction.STREAM_UNARCHIVED, about=slug)
    return _refreshed(stream)


@transaction.atomic
def pause_stream(workspace: Workspace, slug: str, *, reason: str) -> Stream:
    """Refuse new emails of a stream and hold queued ones. Pausing again changes only the reason.

    Raises NotFound, InvalidStream.
    """
    if slug == MAIN:
        raise InvalidStream(CodedText("streams.main_sends"), field="id")
    stream = _locked(workspace, slug)
    Stream.objects.filter(id=stream.id).update(
        paused_at=Coalesce("paused_at", Now()),
        paused_reason=reason,
        paused_code=reason.to_json() if isinstance(reason, CodedText) else None,
    )
    if stream.paused_at is None:
        record_action(
            workspace, AuditAction.STREAM_PAUSED, about=CodedText("streams.pause_reason", name=slug, reason=reason)
        )
    return _refreshed(stream)


@transaction.atomic
def resume_stream(workspace: Workspace, slug: str) -> Stream:
    """Let a paused stream send again, and exclude earlier emails from its reputation. Raises NotFound.

    Resuming again does nothing. Held emails are sent within seconds (emails.sending.sending_checks).
    """
    stream = _locked(workspace, slug)
    if stream.paused_at:
        changes = {"paused_at": None, "paused_reason": "", "paused_code": None, "judged_from": stream.paused_at}
        Stream.objects.filter(id=stream.id).update(**changes)
        record_action(workspace, AuditAction.STREAM_RESUMED, about=slug)
    return _refreshed(stream)


def _locked(workspace: Workspace, slug: str) -> Stream:
    """Return the locked row of a stream; `main` gets one."""
    if slug == MAIN:
        Stream.objects.bulk_create([main_stream(workspace)], ignore_conflicts=True)
    # PostgreSQL refuses some characters.
    is_slug = STREAM.fullmatch(slug) is not None
    stream = Stream.objects.select_for_update().filter(workspace=workspace, slug=slug).first() if is_slug else None
    if stream is None:
        raise NotFound
    return stream


def _refreshed(stream: Stream) -> Stream:
    stream.refresh_from_db()
    return stream


def check_transport_route(name: str, *, workspace_id: str = "") -> None:
    """Raise TransportRouteNotAllowed unless a workspace, or any without an id, may use a route; empty for the usual."""
    transports = settings.TRANSPORTS
    allowed = transports.routes_of(workspace_id) if workspace_id else tuple(transports.routes)
    if name and name not in allowed:
        detail = CodedText("streams.route_not_allowed", name=repr(name), allowed=", ".join(allowed))
        raise TransportRouteNotAllowed(detail, field="transportRoute", allowedRoutes=list(allowed))


def _check_content_retention(hours: int | None, workspace: Workspace) -> None:
    """Raise InvalidStream if the content would be kept longer than the emails."""
    limit = workspace.limits.retention // timedelta(hours=1)
    if hours is not None and hours > limit:
        raise InvalidStream(CodedText("streams.content_retention", limit=limit), field="contentRetention")


def check_stream(*, slug: str, is_archived: bool, **values: Any) -> None:
    """Raise InvalidStream or TransportRouteNotAllowed if a stream cannot be made with these properties."""
    check_transport_route(values.get("transport_route", ""))
    stream = main_stream(Workspace()) if slug == MAIN else Stream(slug=slug)
    if stream.is_main and is_archived:
        raise InvalidStream(CodedText("streams.main_stays"), field="archived")
    for name, value in values.items():
        setattr(stream, name, value)
    _check(stream)


def _check(stream: Stream) -> None:
    """Raise InvalidStream if properties do not fit together."""
    if stream.approval and stream.sensitive:
        raise InvalidStream(CodedText("streams.approval_needs_content"), field="approval")
    if stream.kind == Stream.Kind.BULK and stream.unsubscribe == Stream.Unsubscribe.NONE:
        raise InvalidStream(CodedText("streams.bulk_needs_unsubscribe"), field="unsubscribe")
    if settings.STREAMS_WITHOUT_LINK == "deny" and stream.unsubscribe != Stream.Unsubscribe.LINK:
        raise InvalidStream(CodedText("streams.link_demanded"), field="unsubscribe")
    if stream.is_main:
        usual = main_stream(stream.workspace)
        for name, field in FIXED_IN_MAIN.items():
            if getattr(stream, name) != getattr(usual, name):
                raise InvalidStream(CodedText("streams.main_is_fixed"), field=field)
