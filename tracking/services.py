"""What the recipients' doors do with a token."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import InterfaceError, OperationalError

from emails.events.opens_and_clicks import Hit
from emails.events.unsubscribe import unsubscribe
from emails.models import Email
from emails.sending.links import ClickedLink, UnsubscribeLink, read_click, read_open, read_unsubscribe
from lib.tokens import InvalidToken
from tracking.bot_detection import is_machine
from tracking.recorder import recorder
from workspaces.models import Workspace


@dataclass(frozen=True)
class Sender:
    """Who wrote to the recipient, as far as it is still known; empty where it is not."""

    name: str = ""
    domain: str = ""


def note_open(token: str, *, meta: Mapping[str, Any]) -> None:
    """Keep an open; a bad token is nobody's."""
    try:
        recipient_id = read_open(token)
    except InvalidToken:
        return
    recorder.add(Hit(recipient_id, is_machine=is_machine(meta)))


def click_link(token: str) -> ClickedLink | None:
    """Return what a token says, None for one that is not ours."""
    try:
        return read_click(token)
    except InvalidToken:
        return None


def note_click(link: ClickedLink, *, meta: Mapping[str, Any]) -> None:
    """Keep a click."""
    recorder.add(Hit(link.recipient_id, url=link.target, is_machine=is_machine(meta)))


def unsubscribe_link(token: str) -> UnsubscribeLink | None:
    """Return what a token says, None for one that is not ours."""
    try:
        return read_unsubscribe(token)
    except InvalidToken:
        return None


def sender_of(link: UnsubscribeLink) -> Sender:
    """Look up who sent the email; the page does without when the database cannot be asked."""
    try:
        name = Workspace.objects.filter(id=link.workspace_id).values_list("name", flat=True).first()
        email = Email.objects.filter(recipients=link.recipient_id, workspace=link.workspace_id)
        domain = email.values_list("from_domain", flat=True).first()
    except (OperationalError, InterfaceError):
        return Sender()
    return Sender(name or "", domain or "")


def has_unsubscribed(link: UnsubscribeLink) -> bool:
    """Unsubscribe; return False when the database cannot be reached, so that it has to be tried again."""
    try:
        unsubscribe(link)
    except (OperationalError, InterfaceError):
        return False
    return True


def masked(address: str) -> str:
    """Return an address as its owner knows it and nobody else: a•••@e•••.com.

    The page may be open on a screen that others see, and links are forwarded with their mails.
    """
    local, _, domain = address.rpartition("@")
    name, _, suffix = domain.rpartition(".")
    return f"{local[:1]}•••@{name[:1]}•••.{suffix}"
