"""Answers and answered emails: `inReplyToId` and `replyTracking` of a send request.

Received emails are the rows of an app above this one, which registers its lookup when it starts.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from core.api.errors import InvalidFields, Problem
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import FORBIDDEN, Address
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
    """A received email.

    to: the address to which an answer goes; None if the email has no valid one.
    """

    to: Address | None
    subject: str
    message_id: str
    references: tuple[str, ...]
    in_reply_to: str


FindAnswered = Callable[[Workspace, Collection[str], KeyLimits], Mapping[str, AnsweredEmail]]
FINDERS = Registry[FindAnswered]()


def complete_drafts(
    workspace: Workspace, drafts: Sequence[Draft | Problem], limits: KeyLimits
) -> list[Draft | Problem]:
    """Return drafts with the fields of the emails that they answer, and with the domains of their reply addresses.

    The problem of a draft is ReceivedEmailNotFound, ReplyTrackingConflict, ReceivingNotActive, or InvalidFields if it
    has no recipient.
    """
    ids = {draft.answers for draft in drafts if isinstance(draft, Draft) and draft.answers}
    answered: dict[str, AnsweredEmail] = {}
    for find in FINDERS.values() if ids else ():
        answered.update(find(workspace, ids, limits))
    return [draft if isinstance(draft, Problem) else _completed(workspace, draft, answered) for draft in drafts]


def _completed(workspace: Workspace, draft: Draft, answered: Mapping[str, AnsweredEmail]) -> Draft | Problem:
    try:
        if draft.answers:
            draft = _with_answered(draft, answered.get(draft.answers))
        return replace(draft, reply_domain=_reply_domain(workspace, draft)) if draft.reply_tracking else draft
    except Problem as problem:
        return problem


def _reply_domain(workspace: Workspace, draft: Draft) -> str:
    if draft.reply_to:
        raise ReplyTrackingConflict(CodedText("emails.reply_tracking_conflict"), field="replyTracking")
    domain = reply_domain(workspace, from_domain=draft.sender.domain)
    if not domain:
        detail = CodedText("emails.receiving_not_active", name=draft.sender.domain)
        raise ReceivingNotActive(detail, field="replyTracking", domain=draft.sender.domain)
    return domain


def _with_answered(draft: Draft, answered: AnsweredEmail | None) -> Draft:
    """Return a draft with recipient, subject and thread fields (RFC 5322, section 3.6.4) where it has none."""
    if answered is None:
        detail = CodedText("emails.received_not_found", name=repr(str(draft.answers)[:80]))
        raise ReceivedEmailNotFound(detail, field="inReplyToId")
    given = {name.lower() for name in draft.headers}
    thread = {name: value for name, value in _thread(answered).items() if name.lower() not in given and value}
    subject = draft.subject
    if subject is None and not draft.template:
        subject = answer_subject(answered.subject)
    to = draft.to or (answered.to and (answered.to,))
    if not to:
        raise InvalidFields([{"field": "to", "code": "required", "detail": CodedText("emails.no_addressee")}])
    return replace(draft, to=to, subject=subject, headers={**draft.headers, **thread})


def answer_subject(subject: str) -> str:
    """Return the subject of an answer to an email with a subject."""
    plain = FORBIDDEN.sub(" ", subject).strip()
    return (plain if plain[:3].lower() == "re:" else f"Re: {plain}")[:MAX_SUBJECT_LENGTH]


def _thread(answered: AnsweredEmail) -> dict[str, str]:
    references = answered.references or ((answered.in_reply_to,) if answered.in_reply_to else ())
    ids = [text for text in (*references, answered.message_id) if text.isascii() and text.isprintable()]
    # The first message of a long thread and its last ones.
    while len(ids) > 2 and len(" ".join(ids)) > MAX_REFERENCES_LENGTH:
        del ids[1]
    line = " ".join(ids)
    return {
        "In-Reply-To": answered.message_id if answered.message_id.isascii() else "",
        "References": line if len(line) <= MAX_REFERENCES_LENGTH else "",
    }
