"""Requests of `/v1/emails` about an accepted email."""

from core.api.fields import OPTIONAL, StrictSerializer, TextField
from emails.accept.idempotency import MAX_LENGTH
from emails.accept.rules.fields import ScheduleField
from emails.approvals import MAX_REASON_LENGTH


class ResendInput(StrictSerializer):
    """`POST /v1/emails/:id/resend`. Only a key is allowed: ignoring `scheduledFor` would send immediately."""

    idempotencyKey = TextField(
        **OPTIONAL,
        max_length=MAX_LENGTH,
        help_text="Each key accepts one request per workspace. A repeat returns the first response.",
    )


class RejectInput(StrictSerializer):
    reason = TextField(
        **OPTIONAL,
        max_length=MAX_REASON_LENGTH,
        help_text="Why it is not sent. The sender sees it in the event.",
    )


class RescheduleInput(StrictSerializer):
    scheduledFor = ScheduleField(
        allow_null=True, help_text="The new time, at most 30 days ahead; null sends the email now."
    )
