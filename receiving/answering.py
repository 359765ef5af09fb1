"""The received email that a new email answers: `inReplyToId` of a send request."""

from core.lib.ids import is_id
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from emails.accept.answers import AnsweredEmail
from receiving.models import ReceivedEmail


def find_answered(workspace: Workspace, received_id: str, limits: KeyLimits) -> AnsweredEmail | None:
    """Return the fields of a received email that its answer needs; None if the workspace has none with this id."""
    if not is_id(received_id, prefix="inb_"):
        return None
    # Only the message of this id: a key that may not read received emails learns nothing but its subject.
    emails = ReceivedEmail.objects.filter(workspace=workspace, is_test=limits.is_test)
    email = emails.without_content().filter(id=received_id).first()
    if email is None:
        return None
    message = email.message
    addressees = message.addresses.get("replyTo") or message.addresses.get("from") or []
    return AnsweredEmail(
        to=tuple(entry["email"] for entry in addressees[:1]),
        subject=email.subject,
        message_id=message.message_id,
        references=tuple(message.references),
        in_reply_to=message.in_reply_to,
    )
