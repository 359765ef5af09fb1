"""Requests of `/v1/emails` about an accepted email."""

from api.fields import StrictSerializer, TextField
from emails.accept.idempotency import MAX_LENGTH
from emails.accept.rules.fields import ScheduleField


class ResendInput(StrictSerializer):
    """`POST /v1/emails/:id/resend`. Only a key is allowed: ignoring `scheduledFor` would send immediately."""

    idempotencyKey = TextField(required=False, allow_null=True, max_length=MAX_LENGTH)  # noqa: N815


class RescheduleInput(StrictSerializer):
    scheduledFor = ScheduleField(allow_null=True)  # noqa: N815
