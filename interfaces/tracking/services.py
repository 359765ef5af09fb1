"""Open, click and unsubscribe requests of recipients, identified by a token."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, QueryDict

from core.lib.email_addresses import read_stored_address
from core.lib.tokens import InvalidToken
from core.workspaces.models import Workspace
from emails.feedback.opens_and_clicks import Hit
from emails.feedback.preferences import (
    Preferences,
    is_undoable,
    offered_streams,
    read_preferences,
    save_preferences,
    stop_everything,
    undo_unsubscribe,
)
from emails.feedback.unsubscribe import unsubscribe
from emails.links import ClickedLink, UnsubscribeLink, read_open
from emails.models import Email
from interfaces.tracking.bot_detection import is_bot
from interfaces.tracking.hosts import ServedHost
from interfaces.tracking.recorder import recorder

L = TypeVar("L")


@dataclass(frozen=True)
class Sender:
    """The sender of an email; fields are empty when they are no longer known.

    name: the name of the From address, or that of the workspace if the email is deleted or has none
    (docs/decisions/0270).
    stream: the name of the email's stream, unless it is `main`.
    has_choices: the preference page offers streams.
    locale: the language of the email; None if it is not known.
    """

    name: str = ""
    domain: str = ""
    stream: str = ""
    has_choices: bool = False
    locale: str | None = None


def read_link(read: Callable[[str], L], token: str) -> L | None:
    """Return the link of a token, or None if the token is invalid."""
    try:
        return read(token)
    except InvalidToken:
        return None


def is_served(workspace_id: str, request: HttpRequest) -> bool:
    """Return whether links of a workspace work at the host of a request: any at PUBLIC_URL, its own at its hosts."""
    host: ServedHost | None = getattr(request, "tracking_host", None)
    return host is None or workspace_id in host.owners


def record_open(token: str, *, meta: Mapping[str, Any]) -> None:
    """Buffer an open; ignore an invalid token."""
    if recipient_id := read_link(read_open, token):
        recorder.add(Hit(recipient_id, is_bot=is_bot(meta)))


def record_click(link: ClickedLink, *, meta: Mapping[str, Any]) -> None:
    """Buffer a click."""
    recorder.add(Hit(link.recipient_id, url=link.target, is_bot=is_bot(meta)))


def find_sender(link: UnsubscribeLink) -> Sender:
    """Return the sender of the email; an empty Sender if the database is unreachable."""
    try:
        workspace = Workspace.objects.filter(id=link.workspace_id).first()
        email = Email.objects.filter(recipients=link.recipient_id, workspace=link.workspace_id)
        sender, domain, locale = email.values_list("sender", "from_domain", "locale_used").first() or ("", "", None)
        streams = offered_streams(workspace, link.stream) if workspace else []
    except (OperationalError, InterfaceError):
        return Sender()
    stream = next((stream.name for stream in streams if stream.slug == link.stream), "")
    name = read_stored_address(sender).name or (workspace.name if workspace else "")
    return Sender(name, domain, stream, has_choices=bool(streams), locale=locale)


def find_preferences(link: UnsubscribeLink) -> Preferences | None:
    """Return the preferences of the recipient; None if the database is unreachable."""
    try:
        return read_preferences(link)
    except (OperationalError, InterfaceError):
        return None


def try_saving(link: UnsubscribeLink, form: QueryDict) -> bool:
    """Save the form of the preference page, or undo the unsubscribe with the button of the page after it.

    Returns False if the form is incomplete or the database is unreachable.

    The pressed button is its last field: without one, the choice may be cut off.
    """
    if not {"everything", "save", "undo"} & form.keys():
        return False
    try:
        if "undo" in form:
            undo_unsubscribe(link)
        elif "everything" in form:
            stop_everything(link)
        else:
            save_preferences(link, wanted=form.getlist("stream"))
    except (OperationalError, InterfaceError):
        return False
    return True


def try_unsubscribe(link: UnsubscribeLink) -> bool:
    """Unsubscribe; return False if the database is unreachable and the request must be repeated."""
    try:
        unsubscribe(link)
    except (OperationalError, InterfaceError):
        return False
    return True


def can_undo(link: UnsubscribeLink) -> bool:
    """Return whether the page after an unsubscribe offers to undo it; False if the database is unreachable."""
    try:
        return is_undoable(link)
    except (OperationalError, InterfaceError):
        return False


def mask_address(address: str) -> str:
    """Return an address that only its owner recognizes: a•••@e•••.com.

    Other people may see the page: screens are shared, and links are forwarded with their emails.
    """
    local, _, domain = address.rpartition("@")
    name, _, suffix = domain.rpartition(".")
    return f"{local[:1]}•••@{name[:1]}•••.{suffix}"
