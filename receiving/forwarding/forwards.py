"""Forwards: new emails of the workspace with a received message attached (docs/decisions/0243).

Those of a route are made after the email is published: its row has a due time (docs/decisions/0281).
"""

import logging

from django.db import Error, transaction
from django.db.models import Count
from django.db.models.functions import Now, TruncDay

from core.api.errors import Problem
from core.delivery.message.compose import File
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import FORBIDDEN, Address, InvalidAddress, normalize_address, parse_address
from core.lib.forking import LARGE_BYTES, return_free_memory
from core.lib.worker.failpoints import failpoint
from core.lib.worker.lease_queue import Claim, LeaseQueue
from core.lib.worker.unused_claims import UnusedClaims
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.key_limits import NO_LIMITS, KeyLimits, read_limits
from emails.accept.drafts import Draft
from emails.accept.rules.attachments import MAX_TOTAL_BYTES
from emails.accept.rules.fields import MAX_SUBJECT_LENGTH
from emails.accept.services import send_email
from receiving.errors import NotForwarded
from receiving.forwarding.targets import confirmed_targets, is_received_here, require_confirmed
from receiving.models import Forward, InboundRoute, Message, ReceivedEmail
from receiving.reading.message import cut_text
from receiving.source import read_source
from receiving.states import ReceivedStatus

log = logging.getLogger("postrider.receiving")

# Marks a forward, so that no installation forwards it again.
MARK = "X-Postrider-Forwarded"
DAILY_LIMIT = 1_000
TEXT_BYTES = 64 * 1024
MAX_NAME_LENGTH = 100
# After that many claims without an outcome, the forwards of an email are recorded as failed.
MAX_ATTEMPTS = 3
QUEUE = LeaseQueue(
    table="receiving_receivedemail",
    due_at="forward_due_at",
    fence="forward_attempts",
    attempts="forward_attempts",
    lost="forward_attempts",
    condition="forward_due_at IS NOT NULL",
)
UNUSED: UnusedClaims[Claim] = UnusedClaims(QUEUE.give_back)


def forward_due(limit: int) -> bool:
    """Forward up to `limit` emails by their routes, each in its own transaction; return whether one was due.

    A forward that fails is recorded with the code of the problem; nothing is sent to anybody about it. An error of the
    database is raised.
    """
    UNUSED.give_back()
    count = 0
    while count < limit and _forward_next():
        count += 1
    return count > 0


def _forward_next() -> bool:
    """Claim one email and forward it; return False if none is due. One that ends its worker takes no other with it."""
    with UNUSED.claiming() as claims:
        claims += [Claim(*row) for row in QUEUE.claim_due(1)]
        for claim in claims:
            if _forward_claimed(claim) > LARGE_BYTES:
                return_free_memory()
    return bool(claims)


@transaction.atomic
def _forward_claimed(claim: Claim) -> int:
    """Forward a claimed email; return its size in bytes, 0 if the claim was lost."""
    if not QUEUE.lock_claimed([claim]):
        return 0
    email = ReceivedEmail.objects.select_related("workspace", "message").get(id=claim.key)
    _forward_by_route(email, error="internal_error" if claim.attempt > MAX_ATTEMPTS else "")
    ReceivedEmail.objects.filter(id=email.id).update(forward_due_at=None, processed_at=Now())
    failpoint("receiving.before_forward_commit")
    return int(email.size)


def _forward_by_route(email: ReceivedEmail, *, error: str) -> None:
    """Forward an email to the targets of its route, or record an error for each of them."""
    route = InboundRoute.objects.filter(id=email.route_id).first()
    if route is None or refusal(email):
        return
    confirmed = confirmed_targets(email.workspace)
    for address in route.forward_to:
        if normalize_address(address) not in confirmed:
            continue
        if problem := error or _try_forward(email, address, route):
            Forward.objects.create(email=email, route_id=route.id, address=address, error=problem)


def forward_email(email: ReceivedEmail, *, to: str) -> Forward:
    """Forward an email by request.

    Raises NotForwarded, InvalidFields with forward_not_confirmed, and the errors of send_email.
    """
    if reason := refusal(email):
        raise NotForwarded(CodedText("receiving.not_forwarded", reason=reason), reason=reason)
    require_confirmed(email.workspace, [to], field="to")
    if is_received_here(to):
        raise NotForwarded(CodedText("receiving.not_forwarded", reason="own_domain"), reason="own_domain")
    route = InboundRoute.objects.filter(id=email.route_id).first() if email.route_id else None
    with transaction.atomic():
        forward = _forward(email, to, route)
        record_action(email.workspace, AuditAction.INBOUND_FORWARDED, about=f"{email.id} → {to}")
    return forward


def refusal(email: ReceivedEmail) -> str:
    """Return why an email is never forwarded, "" if it can be: a forward must not cause a loop or spread spam."""
    message = email.message
    reasons = {
        "not_processed": email.status != ReceivedStatus.PROCESSED,
        # Released before it was read: nothing is known of it that would stop a loop.
        "unreadable": message.is_unread,
        "null_sender": not message.envelope_from,
        "automatic": message.automatic != Message.Automatic.NO,
        "forwarded": any(name.strip().lower() == MARK.lower() for name, _ in message.headers),
        "spam": bool(message.spam and message.spam["isSpam"]),
        "too_large": message.size > MAX_TOTAL_BYTES,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def forwarding_address(recipient: str) -> str:
    """Return the sender of forwards of a recipient's email: its address without a label."""
    local, _, domain = recipient.rpartition("@")
    return f"{local.partition('+')[0]}@{domain}"


def _try_forward(email: ReceivedEmail, address: str, route: InboundRoute) -> str:
    """Forward an email; return the code of the problem if it is not forwarded, else ""."""
    if is_received_here(address):
        return "own_domain"
    if _count_today(route) >= DAILY_LIMIT:
        return "daily_limit"
    try:
        with transaction.atomic():
            _forward(email, address, route)
    except Problem as problem:
        return problem.code
    except Error:
        # It says nothing about the forward: the transaction is repeated.
        raise
    except Exception:
        log.exception("a received email could not be forwarded", extra={"data": {"email": email.id}})
        return "internal_error"
    return ""


def _forward(email: ReceivedEmail, address: str, route: InboundRoute | None) -> Forward:
    limits: KeyLimits = read_limits(is_test=True) if email.is_test else NO_LIMITS
    stored = send_email(email.workspace, draft=_draft(email, address, route), key=None, limits=limits)
    route_id = route.id if route else None
    forward = Forward(email=email, address=address, sent_email_id=stored.body["id"])
    forward.route_id = route_id  # type: ignore[assignment]  # null for a reply address
    forward.save(force_insert=True)
    return forward


def _count_today(route: InboundRoute) -> int:
    today = Forward.objects.filter(route_id=route.id, error="", created_at__gte=TruncDay(Now()))
    return int(today.aggregate(count=Count("id"))["count"])


def _draft(email: ReceivedEmail, address: str, route: InboundRoute | None) -> Draft:
    message = email.message
    mailbox = next(iter(message.addresses.get("from", ())), {"email": "", "name": ""})
    name = f"{mailbox['name'] or mailbox['email'].partition('@')[0]} via {route.name if route else email.recipient}"
    answer_to = next(iter(message.addresses.get("replyTo", ())), mailbox)
    reply_to = _address("", answer_to["email"])
    # Also of a message that was read by a version before, which kept line ends.
    subject = f"Fwd: {FORBIDDEN.sub(' ', message.subject).strip() or '(no subject)'}"[:MAX_SUBJECT_LENGTH]
    source = b"".join(read_source(message))
    return Draft(
        sender=_address(name[:MAX_NAME_LENGTH], forwarding_address(email.recipient)) or parse_address(email.recipient),
        to=(parse_address(address),),
        subject=subject,
        text=cut_text(message.text, TEXT_BYTES) or subject,
        reply_to=(reply_to,) if reply_to else (),
        headers={MARK: email.route_id or "1"},
        metadata={"inboundId": email.id},
        files=(File("message.eml", "message/rfc822", source),),
        track_opens=False,
        track_clicks=False,
    )


def _address(name: str, spec: str) -> Address | None:
    """Return an address with a name without control characters; None for an address that cannot be sent to."""
    plain = " ".join(FORBIDDEN.sub(" ", name).split())
    try:
        return parse_address(str(Address(plain, spec)))
    except InvalidAddress:
        return None
