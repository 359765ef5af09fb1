"""The preferences of a recipient: the public streams of a workspace, and an unsubscribe that its recipient can undo.

Only suppressions with the reason `unsubscribe` are undone here; bounces, complaints and manual entries stay
(docs/decisions/0270).
"""

from collections.abc import Collection
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from core.workspaces.models import Workspace
from emails.feedback.unsubscribe import record_unsubscribe
from emails.links import UnsubscribeLink
from emails.models import Recipient
from streams.models import Stream
from streams.services import read_streams, suppressed_stream
from suppressions.erased import all_keys
from suppressions.models import Suppression
from suppressions.services import delete_suppressions, suppress_address

UNSUBSCRIBE = Suppression.Reason.UNSUBSCRIBE


@dataclass(frozen=True)
class StreamChoice:
    """A stream that a recipient can choose. is_blocked: for another reason than an unsubscribe."""

    slug: str
    name: str
    description: str
    is_wanted: bool
    is_blocked: bool


@dataclass(frozen=True)
class Preferences:
    """The preferences of an address.

    has_unsubscribed: unsubscribed from all emails of the workspace.
    is_blocked: all emails are blocked, for another reason.
    """

    streams: list[StreamChoice]
    has_unsubscribed: bool
    is_blocked: bool


def read_preferences(link: UnsubscribeLink) -> Preferences:
    """Return the preferences of a link's address; without streams if the workspace is deleted."""
    workspace = Workspace.objects.filter(id=link.workspace_id).first()
    streams = offered_streams(workspace, link.stream) if workspace else []
    reasons = _reasons(link, [stream.slug for stream in streams])
    whole = reasons.get("")
    return Preferences(
        [
            StreamChoice(
                stream.slug,
                stream.name,
                stream.description if stream.public else "",
                is_wanted=not reasons.get(stream.slug) and (whole is None or _is_ignored(stream, whole)),
                is_blocked=reasons.get(stream.slug, UNSUBSCRIBE) != UNSUBSCRIBE,
            )
            for stream in streams
        ],
        has_unsubscribed=whole == UNSUBSCRIBE,
        is_blocked=whole is not None and whole != UNSUBSCRIBE,
    )


@transaction.atomic
def save_preferences(link: UnsubscribeLink, *, wanted: Collection[str]) -> None:
    """Unsubscribe an address from the streams that it does not want, and undo its unsubscribes from the others."""
    workspace = _changeable_workspace(link)
    if workspace is None:
        return
    slugs = [stream.slug for stream in offered_streams(workspace, link.stream)]
    reasons = _reasons(link, slugs)
    if reasons.get("") == UNSUBSCRIBE and (wanted or not slugs):
        delete_suppressions(workspace, addresses=[link.address])
    for slug in slugs:
        if slug not in wanted:
            suppress_address(workspace, address=link.address, reason=UNSUBSCRIBE, stream=slug)
        elif reasons.get(slug) == UNSUBSCRIBE:
            delete_suppressions(workspace, addresses=[link.address], stream=slug)
    if link.stream in slugs and link.stream not in wanted:
        record_unsubscribe(link)


@transaction.atomic
def stop_everything(link: UnsubscribeLink) -> None:
    """Unsubscribe an address from all emails of the workspace, except streams that ignore unsubscribes."""
    workspace = _changeable_workspace(link)
    if workspace:
        suppress_address(workspace, address=link.address, reason=UNSUBSCRIBE)
        record_unsubscribe(link)


def is_undoable(link: UnsubscribeLink) -> bool:
    """Return whether the address is suppressed by an unsubscribe with this link, or one to the same effect.

    False for the link of a test email or a diverted message, which suppresses nothing.
    """
    blocked = suppressed_stream(link.workspace_id, link.stream, UNSUBSCRIBE)
    return _reasons(link, [blocked]).get(blocked) == UNSUBSCRIBE and not _is_without_effect(link)


@transaction.atomic
def undo_unsubscribe(link: UnsubscribeLink) -> None:
    """Undo an unsubscribe with this link. Repeating it changes nothing; unsubscribes from other streams stay."""
    workspace = _changeable_workspace(link)
    if workspace and is_undoable(link):
        blocked = suppressed_stream(workspace.id, link.stream, UNSUBSCRIBE)
        delete_suppressions(workspace, addresses=[link.address], stream=blocked)


def _changeable_workspace(link: UnsubscribeLink) -> Workspace | None:
    """Return the locked workspace; None if it is deleted, or for a link without effect."""
    workspace = Workspace.objects.select_for_update(no_key=True).filter(id=link.workspace_id).first()
    return workspace if workspace and not _is_without_effect(link) else None


def _is_without_effect(link: UnsubscribeLink) -> bool:
    """Return whether the recipient of a link did not get the message: of a test email, or a diverted one."""
    recipients = Recipient.objects.filter(Q(email__is_test=True) | Q(diversion__isnull=False))
    return recipients.filter(id=link.recipient_id, email__workspace=link.workspace_id).exists()


def offered_streams(workspace: Workspace, slug: str) -> list[Stream]:
    """Return the streams to choose from: public ones, and that of the email."""
    return [
        stream
        for stream in read_streams(workspace).values()
        if stream.scope == Stream.SuppressionScope.STREAM
        and stream.unsubscribe != Stream.Unsubscribe.NONE
        and ((stream.public and not stream.archived_at) or stream.slug == slug)
    ]


def _reasons(link: UnsubscribeLink, slugs: Collection[str]) -> dict[str, str]:
    """Return the reasons of the suppressions of an address by stream; that of the whole workspace has none."""
    keys = [key for slug in ("", *slugs) for key in all_keys(link.address, stream=slug)]
    rows = Suppression.objects.filter(workspace=link.workspace_id, address_key__in=keys)
    return dict(rows.values_list("stream", "reason"))


def _is_ignored(stream: Stream, reason: str) -> bool:
    return stream.ignores_unsubscribes and reason == UNSUBSCRIBE
