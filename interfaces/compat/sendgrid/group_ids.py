"""Unsubscribe groups in the emails of SendGrid's API: each is a stream, by its number. See docs/decisions/0180."""

from collections.abc import Mapping
from typing import Any

from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from emails.feedback.preferences import offered_streams
from interfaces.compat.drafts import as_list, as_object
from interfaces.compat.errors import invalid_field
from streams.models import MAIN, Stream
from streams.services import read_streams

# https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send
MAX_DISPLAYED = 25
GROUP, DISPLAYED = "asm.group_id", "asm.groups_to_display"
BYPASS = "mail_settings.bypass_unsubscribe_management"


def read_stream(body: dict[str, Any], *, workspace: Workspace, limits: KeyLimits) -> str | None:
    """Return the stream of a request's group, None without one. Raises InvalidFields."""
    asm = as_object(body.get("asm"), "asm")
    settings = as_object(body.get("mail_settings"), "mail_settings")
    bypasses = as_object(settings.get("bypass_unsubscribe_management"), BYPASS).get("enable") is True
    if not asm and not bypasses:
        return None
    streams = read_streams(workspace)
    stream = _read_group(asm, workspace, streams) if asm else None
    if bypasses:
        only = limits.streams[0] if len(limits.streams) == 1 else MAIN
        _refuse_bypass(stream or streams.get(only))
    return stream.slug if stream else None


def _read_group(asm: dict[str, Any], workspace: Workspace, streams: Mapping[str, Stream]) -> Stream:
    groups = {stream.number: stream for stream in streams.values() if not stream.is_main}
    group = _find(groups, asm.get("group_id"), field=GROUP)
    shown = {stream.slug for stream in offered_streams(workspace, group.slug)}
    for index, number in enumerate(as_list(asm.get("groups_to_display"), DISPLAYED, at_most=MAX_DISPLAYED)):
        displayed = _find(groups, number, field=f"{DISPLAYED}.{index}")
        if displayed.slug not in shown:
            detail = f"The preference page does not show the group {number}. It shows public streams: set `public`."
            raise invalid_field(f"{DISPLAYED}.{index}", detail)
    return group


def _find(groups: Mapping[int, Stream], number: Any, *, field: str) -> Stream:
    if number is None:
        raise invalid_field(field, "This field is required.", code="required")
    if not isinstance(number, int) or isinstance(number, bool) or number not in groups:
        raise invalid_field(field, "There is no group with this id.")
    return groups[number]


def _refuse_bypass(stream: Stream | None) -> None:
    if stream is None or not stream.ignores_unsubscribes:
        detail = (
            "Unsubscribes are bypassed only in a stream that ignores them. Create one with `ignoresUnsubscribes` with "
            "POST /v1/streams, and name its group in asm.group_id."
        )
        raise invalid_field(BYPASS, detail)
