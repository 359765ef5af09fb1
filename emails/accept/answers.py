"""Answers and answered emails: `inReplyToId` and `replyTracking` of a send request.

Received emails are the rows of an app above this one, which registers its lookup when it starts.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from core.api.errors import InvalidFields
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import Address, InvalidAddress, parse_recipient
from core.lib.registry import Registry
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from domains.receiving.services import reply_domain
from emails.accept.drafts import Draft
from emails.errors import ReceivedEmailNotFound, ReceivingNotActive, ReplyTrackingConflict

# RFC 5322, section 2.1.1, for a line; the fields of a message are folded, other programs' limits are not known.
MAX_REFERENCES_LENGTH = 900
MAX_SUBJECT_LENGTH = 990


@dataclass(frozen=True)
class AnsweredEmail:
    """A received email. to: the addresses to which an answer goes."""

    to: tuple[str, ...]
    subject: str
    message_id: str
    references: tuple[str, ...]
    in_reply_to: str


FindAnswered = Callable[[Workspace, str, KeyLimits], AnsweredEmail | None]
FINDERS = Registry[FindAnswered]()


def complete_draft(workspace: Workspace, draft: Draft, limits: KeyLimits) -> Draft:
    """Return a draft with what it takes from the email that it answers, and with the domain of its reply address.

    Raises ReceivedEmailNotFound, ReplyTrackingConflict, ReceivingNotActive, and InvalidFields if nobody is addressed.
    """
    if draft.answers:
        draft = _with_answered(draft, _find_answered(workspace, draft.answers, limits))
    if draft.reply_tracking:
        draft = replace(draft, reply_domain=_reply_domain(workspace, draft))
    return draft


def _reply_domain(workspace: Workspace, draft: Draft) -> str:
    if draft.reply_to:
        raise ReplyTrackingConflict(CodedText("emails.reply_tracking_conflict"), field="replyTracking")
    domain = reply_domain(workspace, from_domain=draft.sender.domain)
    if not domain:
        detail = CodedText("emails.receiving_not_active", name=draft.sender.domain)
        raise ReceivingNotActive(detail, field="replyTracking", domain=draft.sender.domain)
    return domain


def _find_answered(workspace: Workspace, received_id: str, limits: KeyLimits) -> AnsweredEmail:
    for find in FINDERS.values():
        if answered := find(workspace, received_id, limits):
            return answered
    detail = CodedText("emails.received_not_found", name=repr(received_id[:80]))
    raise ReceivedEmailNotFound(detail, field="inReplyToId")


def _with_answered(draft: Draft, answered: AnsweredEmail) -> Draft:
    """Return a draft with recipient, subject and thread fields (RFC 5322, section 3.6.4) where it has none."""
    given = {name.lower() for name in draft.headers}
    thread = {name: value for name, value in _thread(answered).items() if name.lower() not in given and value}
    subject = draft.subject
    if subject is None and not draft.template:
        subject = _answer_subject(answered.subject)
    return replace(draft, to=draft.to or _addressees(answered), subject=subject, headers={**draft.headers, **thread})


def _addressees(answered: AnsweredEmail) -> tuple[Address, ...]:
    for text in answered.to:
        with suppress(InvalidAddress):
            return (parse_recipient(text),)
    detail = CodedText("emails.no_addressee")
    raise InvalidFields([{"field": "to", "code": "required", "detail": detail}])


def _answer_subject(subject: str) -> str:
    plain = "".join(character if character.isprintable() else " " for character in subject)[:MAX_SUBJECT_LENGTH]
    return plain if plain[:3].lower() == "re:" else f"Re: {plain}"


def _thread(answered: AnsweredEmail) -> dict[str, str]:
    references = answered.references or ((answered.in_reply_to,) if answered.in_reply_to else ())
    ids = [text for text in (*references, answered.message_id) if text.isascii() and text.isprintable()]
    # Of a long thread, the first message and the last ones.
    while len(ids) > 2 and len(" ".join(ids)) > MAX_REFERENCES_LENGTH:
        del ids[1]
    line = " ".join(ids)
    return {
        "In-Reply-To": answered.message_id if answered.message_id.isascii() else "",
        "References": line if len(line) <= MAX_REFERENCES_LENGTH else "",
    }
