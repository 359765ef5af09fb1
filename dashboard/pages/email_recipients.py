"""The recipients of an email, each with what became of the mail in words."""

from dataclasses import dataclass

from dashboard.ui.reasons import sentence_for
from emails.models import Email, Recipient

MAX_SHOWN = 100


@dataclass(frozen=True)
class Described:
    """why: the reason as a sentence, if there is one; reply: the receiving server's own words."""

    kind: str
    address: str
    state: str
    attempts: int
    why: str
    reply: str


def described(email: Email) -> list[Described]:
    return [_described(recipient) for recipient in email.recipients.all()[:MAX_SHOWN]]


def _described(recipient: Recipient) -> Described:
    code = str(recipient.reply_code or "")
    message = recipient.error_message or ""
    return Described(
        recipient.kind,
        recipient.address,
        recipient.state,
        recipient.attempts,
        why=sentence_for(recipient.reason),
        # Some servers' sentences begin with the code.
        reply=message if message.startswith(code) else f"{code} {message}",
    )
