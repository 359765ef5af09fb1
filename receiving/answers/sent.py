"""Answers that were sent to received emails: by a person in the dashboard, or with the API."""

from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Lower

from core.workspaces.account_status import refuse_inactive, refuse_suspended
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.key_limits import NO_LIMITS, KeyLimits, read_limits
from emails.accept.drafts import Draft
from emails.accept.idempotency import IdempotencyKey, find_response
from emails.accept.services import send_email
from emails.models import Email, Entrance, Recipient
from receiving.answers.answering import find_addressee
from receiving.models import ReceivedEmail

# The newest emails to the address of an answer, of all workspaces, among which answers are looked for.
MAX_READ = 1_000
MAX_ANSWERS = 20


def answer_email(email: ReceivedEmail, *, draft: Draft, key: IdempotencyKey | None) -> str:
    """Send an answer for a person, which is audited; return the id of the new email.

    draft: its recipient is that of find_addressee. Raises WorkspaceSuspended and the errors of send_email.
    """
    refuse_suspended(email.workspace)
    refuse_inactive(email.workspace)
    if stored := find_response(email.workspace, key):
        return str(stored.body["id"])
    limits: KeyLimits = read_limits(is_test=True) if email.is_test else NO_LIMITS
    draft = replace(draft, answers=email.id, metadata={"inboundId": email.id}, entrance=Entrance.DASHBOARD)
    with transaction.atomic():
        stored = send_email(email.workspace, draft=draft, key=key, limits=limits)
        record_action(email.workspace, AuditAction.INBOUND_ANSWERED, about=email.id)
    return str(stored.body["id"])


def find_answers(emails: Sequence[ReceivedEmail]) -> list[Email]:
    """Return the emails that answer received ones of a workspace, oldest first: those of the dashboard and of the API.

    emails: with their messages. An answer by another address than that of find_addressee is not found.
    """
    addressees = {address.spec.lower() for email in emails if (address := find_addressee(email.message))}
    if not addressees:
        return []
    recipients = Recipient.objects.alias(key=Lower("address")).filter(key__in=addressees)
    newest = recipients.order_by("-email_id").values("email_id")[:MAX_READ]
    ids = [email.id for email in emails]
    message_ids = [email.message.message_id for email in emails if email.message.message_id]
    answers = Q(metadata__inboundId__in=ids) | Q(**{"headers__In-Reply-To__in": message_ids})
    found = Email.objects.filter(answers, workspace=emails[0].workspace_id, id__in=newest)
    return list(found.only("subject", "to", "sender", "created_at", "status").order_by("created_at")[:MAX_ANSWERS])
