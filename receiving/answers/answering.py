"""The received email that a new email answers: `inReplyToId` of a send request."""

from collections.abc import Collection
from contextlib import suppress

from core.lib.email_addresses import Address, InvalidAddress, parse_recipient
from core.lib.ids import is_id
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from emails.accept.answers import AnsweredEmail
from receiving.models import Message, ReceivedEmail


def find_answered(workspace: Workspace, ids: Collection[str], limits: KeyLimits) -> dict[str, AnsweredEmail]:
    """Return the fields of received emails that their answers need, by id; without those that do not exist."""
    # Only the messages of these ids: a key that may not read received emails learns nothing but their subjects.
    emails = ReceivedEmail.objects.filter(workspace=workspace, is_test=limits.is_test)
    named = emails.without_content().filter(id__in=[text for text in ids if is_id(text, prefix="inb_")])
    return {email.id: _fields(email) for email in named}


def find_addressee(message: Message) -> Address | None:
    """Return the address to which an answer goes: Reply-To, else From; None without a valid one."""
    addressees = message.addresses.get("replyTo") or message.addresses.get("from") or []
    return _address(addressees[0]["email"]) if addressees else None


def _fields(email: ReceivedEmail) -> AnsweredEmail:
    message = email.message
    return AnsweredEmail(
        to=find_addressee(message),
        subject=email.subject,
        message_id=message.message_id,
        references=tuple(message.references),
        in_reply_to=message.in_reply_to,
    )


def _address(text: str) -> Address | None:
    with suppress(InvalidAddress):
        return parse_recipient(text)
    return None
