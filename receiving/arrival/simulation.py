"""Simulation: a message as if a mail server had delivered it, with a test key, for tests without an MX record."""

from core.lib.coded_texts import CodedText
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from receiving.arrival.routing import UNKNOWN, decide_recipient
from receiving.arrival.storing import Arrival, store_message
from receiving.arrival.usage import LimitReached
from receiving.errors import RecipientRefused, TestKeyRequired
from receiving.models import ReceivedEmail

HELO = "simulated.invalid"


def simulate_email(
    workspace: Workspace,
    *,
    limits: KeyLimits,
    recipient: str,
    raw: bytes,
    envelopeFrom: str = "",  # noqa: N803
) -> ReceivedEmail:
    """Store a simulated message, which answers test emails only. Raises TestKeyRequired, RecipientRefused."""
    if not limits.is_test:
        raise TestKeyRequired(CodedText("receiving.test_key"))
    decision = decide_recipient(recipient, sender=envelopeFrom)
    if decision.recipient is None or decision.recipient.workspace.id != workspace.id:
        decision = UNKNOWN
    if decision.recipient is None or not decision.is_accepted or decision.recipient.is_discarded:
        raise _refused(recipient, decision.reply)
    arrival = Arrival(raw, envelope_from=envelopeFrom, helo=HELO, is_test=True)
    try:
        email_id = store_message(arrival, [decision.recipient])
    except LimitReached as error:
        raise _refused(recipient, error.reply) from error
    return ReceivedEmail.objects.select_related("message").with_replies().get(id=email_id)


def _refused(recipient: str, reply: str) -> RecipientRefused:
    detail = CodedText("receiving.refused", name=recipient[:80], reply=reply)
    return RecipientRefused(detail, reply=reply)
