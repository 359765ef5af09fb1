"""Recipients on the pages of emails: their outcomes as text, and counts of the failed ones."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.texts.reasons import explain_reason
from core.delivery.recipients import Diversion
from core.delivery.transports.simulator import is_simulated
from core.lib.email_addresses import normalize_address
from emails.models import Email, Recipient, message_id
from emails.states import EmailStatus
from streams.models import MAIN, Stream
from suppressions.models import Suppression, suppression_key
from suppressions.services import find_suppressed

MAX_RECIPIENTS = 100
# Reason of a suppression that does not block the stream of an email → text.
ELSEWHERE = {
    "unsubscribe": gettext_lazy("This address unsubscribed from %(others)s; emails of %(stream)s still reach it."),
    "complaint": gettext_lazy("This address complained about %(others)s; emails of %(stream)s still reach it."),
    "bounce": gettext_lazy("This address bounced in %(others)s; emails of %(stream)s are still sent to it."),
    "manual": gettext_lazy("This address is suppressed in %(others)s; emails of %(stream)s still reach it."),
}


@dataclass(frozen=True)
class RecipientRow:
    """A recipient on the page of an email.

    explanation: the reason as text.
    reply: the receiving server's reply.
    receiver: the name of the organisation that runs the mail host; empty if it is not known.
    suppression_id: the suppression of its address; empty if it is not suppressed.
    elsewhere: its suppressions in other streams, as text.
    is_in_inbox: whether the built-in inbox has caught its message.
    """

    id: str
    kind: str
    address: str
    state: str
    attempts: int
    explanation: str
    reply: str
    receiver: str
    message_id: str
    suppression_id: str
    elsewhere: list[str]
    is_in_inbox: bool


def recipient_rows(email: Email, *, streams: Sequence[Stream]) -> list[RecipientRow]:
    """Return the first recipients of an email. streams: the workspace's; none if it has only `main`."""
    recipients = list(email.recipients.all()[:MAX_RECIPIENTS])
    suppressed = find_suppressed(
        email.workspace_id, [recipient.address for recipient in recipients], stream=email.stream
    )
    suppressions = {address: match.id for address, match in suppressed.items()}
    keyed = [(recipient, normalize_address(recipient.address)) for recipient in recipients]
    elsewhere = _elsewhere(email, {address for _recipient, address in keyed} - suppressions.keys(), streams)
    return [
        _recipient_row(recipient, email, suppressions.get(address, ""), elsewhere.get(address, []))
        for recipient, address in keyed
    ]


def _elsewhere(email: Email, addresses: Collection[str], streams: Sequence[Stream]) -> dict[str, list[str]]:
    """Return texts about the suppressions of addresses that do not block the stream of an email, by address."""
    names = {stream.slug: stream.name for stream in streams}
    if email.stream not in names:
        return {}
    slugs = ["", *(slug for slug in names if slug not in {MAIN, email.stream})]
    keys = {suppression_key(address, stream=slug): address for address in addresses for slug in slugs}
    found: dict[str, dict[str, list[str]]] = {}
    rows = Suppression.objects.filter(workspace=email.workspace_id, address_key__in=keys)
    for key, slug, reason in rows.order_by("stream").values_list("address_key", "stream", "reason"):
        name = names[slug] if slug else _("all emails")
        found.setdefault(keys[key], {}).setdefault(reason, []).append(name)
    return {address: _elsewhere_texts(reasons, names[email.stream]) for address, reasons in found.items()}


def _elsewhere_texts(reasons: Mapping[str, Sequence[str]], stream: str) -> list[str]:
    return [ELSEWHERE[reason] % {"others": ", ".join(names), "stream": stream} for reason, names in reasons.items()]


def partial_failures(emails: Collection[Email]) -> dict[str, str]:
    """Return a text such as "1 of 3 bounced" for each email of which some, but not all, recipients failed."""
    several = [email.id for email in emails if len(email.to) + len(email.cc) + len(email.bcc) > 1]
    if not several:
        return {}
    counts = (
        Recipient.objects.filter(email__in=several)
        .order_by()
        .values_list("email_id")
        .annotate(
            total=Count("id"),
            bounced=Count("id", filter=Q(state=EmailStatus.BOUNCED)),
            failed=Count("id", filter=Q(state=EmailStatus.FAILED)),
        )
    )
    return {
        email_id: _failure_text(total, bounced, failed)
        for email_id, total, bounced, failed in counts
        if 0 < bounced + failed < total
    }


def _failure_text(total: int, bounced: int, failed: int) -> str:
    if failed:
        return _("%(count)s of %(total)s failed") % {"count": bounced + failed, "total": total}
    return _("%(count)s of %(total)s bounced") % {"count": bounced, "total": total}


def _recipient_row(recipient: Recipient, email: Email, suppression_id: str, elsewhere: list[str]) -> RecipientRow:
    code = str(recipient.reply_code or "")
    message = recipient.error_message or ""
    return RecipientRow(
        recipient.id,
        recipient.kind,
        recipient.address,
        recipient.state,
        recipient.attempts,
        explanation=explain_reason(recipient.reason),
        # Some servers' messages begin with the code.
        reply=message if message.startswith(code) else f"{code} {message}",
        receiver=settings.RECEIVERS.receiver_of_key(recipient.receiver).name if recipient.receiver else "",
        message_id=message_id(recipient.id, domain=email.from_domain),
        suppression_id=suppression_id,
        elsewhere=elsewhere,
        is_in_inbox=_is_in_inbox(recipient, email),
    )


def _is_in_inbox(recipient: Recipient, email: Email) -> bool:
    """Return whether the inbox has a recipient's message. The simulator keeps none."""
    if email.is_test or is_simulated(recipient.address, domain=settings.SIMULATOR_DOMAIN):
        return False
    is_kept = settings.DELIVERY_TRANSPORT == "inbox" or recipient.diversion == Diversion.CAPTURED
    return is_kept and recipient.delivered_at is not None
