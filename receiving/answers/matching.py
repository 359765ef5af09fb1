"""The sent email that a received one answers: by its reply address, or by a Message-ID of ours (docs/decisions/0229).

Only emails of the workspace that received are considered. A match proves no identity without `fromRecipient`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.lib.email_addresses import normalize_address
from core.lib.ids import is_id
from core.lib.tokens import InvalidToken
from emails.models import Email, Recipient
from emails.sending.reply_address import PREFIX, read_reply_token
from receiving.models import Message, ReceivedEmail

MatchedBy = ReceivedEmail.MatchedBy


@dataclass(frozen=True)
class ReplyMatch:
    """The recipient of a sent email who is answered for."""

    recipient: Recipient
    matched_by: ReceivedEmail.MatchedBy

    def columns(self, message: Message) -> dict[str, Any]:
        """Return the columns of a received email with this match."""
        return {
            "reply_email_id": self.recipient.email_id,
            "reply_recipient_id": self.recipient.id,
            "reply_address": self.recipient.address,
            "reply_matched_by": self.matched_by,
            "is_from_recipient": is_from(self.recipient, message),
        }


def match_replies(emails: Sequence[ReceivedEmail]) -> dict[str, ReplyMatch]:
    """Return the matches of received emails by their ids, the signed address first; none without one.

    The recipients are found with one statement for all of them.
    """
    asked = {email.id: (_reply_recipient(email.recipient), dict(_referenced(email.message))) for email in emails}
    found = _find_recipients({id_ for first, others in asked.values() for id_ in (*filter(None, [first]), *others)})
    matches = {}
    for email in emails:
        if match := _match(email, *asked[email.id], found):
            matches[email.id] = match
    return matches


def _match(
    email: ReceivedEmail, by_address: str | None, by_message_id: Mapping[str, str], found: Mapping[str, Recipient]
) -> ReplyMatch | None:
    if by_address and (recipient := found.get(by_address)) and _is_within(recipient.email, email):
        return ReplyMatch(recipient, MatchedBy.ADDRESS)
    for recipient_id, domain in by_message_id.items():
        recipient = found.get(recipient_id)
        if recipient and _is_within(recipient.email, email) and recipient.email.from_domain == domain:
            return ReplyMatch(recipient, MatchedBy.MESSAGE_ID)
    return None


def _is_within(sent: Email, email: ReceivedEmail) -> bool:
    """Return whether a sent email is of the workspace that received; a simulated email answers test emails only."""
    return sent.workspace_id == email.workspace_id and sent.is_test == email.is_test


def is_from(recipient: Recipient, message: Message) -> bool:
    """Return whether a message is proven to come from a recipient: From is its address, and its origin is verified."""
    senders = message.addresses.get("from", [])
    is_verified = (message.authentication or {}).get("result") == "pass"
    is_same = len(senders) == 1 and normalize_address(message.sender) == normalize_address(recipient.address)
    return is_verified and is_same


def _reply_recipient(address: str) -> str | None:
    local = address.rpartition("@")[0]
    if not local.lower().startswith(PREFIX):
        return None
    try:
        return read_reply_token(local[len(PREFIX) :])
    except InvalidToken:
        return None


def _referenced(message: Message) -> Iterator[tuple[str, str]]:
    """Yield the ids of recipients and their domains in In-Reply-To, then in References from the end."""
    seen: set[str] = set()
    for text in (message.in_reply_to, *reversed(message.references)):
        local, _, domain = text.strip("<>").partition("@")
        if is_id(local) and local not in seen:
            seen.add(local)
            yield local, domain.lower()


def _find_recipients(ids: Collection[str]) -> Mapping[str, Recipient]:
    """Return recipients of sent emails, of any workspace, by their ids."""
    if not ids:
        return {}
    rows = Recipient.objects.filter(id__in=ids).select_related("email")
    columns = ("address", "email__workspace", "email__is_test", "email__from_domain")
    return {row.id: row for row in rows.only(*columns)}
