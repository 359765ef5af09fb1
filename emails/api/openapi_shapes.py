"""Answers of `/v1/emails` that no serializer writes, and input fields, as the OpenAPI document shows them."""

from typing import Any

from rest_framework import serializers

from api.fields import WireTimeField
from api.schema_fields import ADDRESS, ONE_LINE, refine, show_as
from emails.api import attachments, fields, inputs
from emails.api.serializers import EmailSerializer, EventSerializer
from emails.states import State
from suppressions.errors import RecipientSuppressed

SOME_TEXT = {"not": {"type": "null"}, "minLength": 1}
ADDRESSES = {"type": "array", "items": ADDRESS, "maxItems": inputs.MAX_RECIPIENTS}
NOTHING_BUT_DOTS = r"^(?=.*[^. ])[^\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069/\\]+$"
# ECMA has no \\U.
CONTENT_TYPE = f"^{attachments.CONTENT_TYPE.pattern}$".replace("\\U0010ffff", "\\uffff")
BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


class WarningSerializer(serializers.Serializer[Any]):
    """Something that was accepted and may not be what was meant."""

    code = serializers.CharField()
    message = serializers.CharField()
    variables = serializers.ListField(child=serializers.CharField(), required=False)
    variable = serializers.CharField(required=False)
    indexes = serializers.ListField(child=serializers.IntegerField(), required=False)


class AcceptedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    status = serializers.ChoiceField([State.QUEUED.value, State.SCHEDULED.value])
    createdAt = WireTimeField()  # noqa: N815
    warnings = WarningSerializer(many=True, required=False)


class DryRunSerializer(serializers.Serializer[Any]):
    valid = serializers.BooleanField()
    subject = serializers.CharField()
    html = serializers.CharField()
    text = serializers.CharField()
    warnings = WarningSerializer(many=True)


class BatchEmailSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField(help_text="Of the recipient in the request, from 0.")
    to = serializers.CharField()
    id = serializers.CharField()


class BatchRejectionSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField(help_text="Of the recipient in the request, from 0.")
    to = serializers.CharField()
    code = serializers.ChoiceField([RecipientSuppressed.code])


class BatchAcceptedSerializer(serializers.Serializer[Any]):
    queued = serializers.IntegerField(help_text="How many emails were accepted.")
    ids = serializers.ListField(child=serializers.CharField())
    emails = BatchEmailSerializer(many=True)
    rejected = BatchRejectionSerializer(many=True)
    warnings = WarningSerializer(many=True, required=False)


class RescheduledSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    status = serializers.ChoiceField(State.values)
    createdAt = WireTimeField()  # noqa: N815
    scheduledFor = WireTimeField()  # noqa: N815


class CancelledSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    status = serializers.ChoiceField([State.CANCELLED.value])


class TimelineSerializer(serializers.Serializer[Any]):
    locals()["data"] = EventSerializer(many=True)


show_as(fields.HeaderField, {"type": "string", "pattern": ONE_LINE})
show_as(fields.BodyField, {"type": "string", "maxLength": fields.BodyField.max_bytes})
show_as(fields.AddressListField, ADDRESSES)
show_as(fields.RecipientsField, {"anyOf": [ADDRESS, {**ADDRESSES, "minItems": 1}]})
show_as(inputs.ScheduleField, {"type": "string", "format": "date-time"})
show_as(
    fields.HeadersField,
    {
        "type": "object",
        "description": "Headers of your own. Those that the service sets, or that steer a relay, are refused.",
        "maxProperties": fields.MAX_HEADERS,
        "propertyNames": {"pattern": f"^{fields.HEADER_NAME.pattern}$"},
        "additionalProperties": {"type": "string", "maxLength": fields.MAX_HEADER_LENGTH, "pattern": ONE_LINE},
    },
)
show_as(attachments.FileNameField, {"type": "string", "pattern": NOTHING_BUT_DOTS})
show_as(attachments.Base64Field, {"type": "string", "contentEncoding": "base64", "pattern": BASE64})

refine(
    attachments.FileInput,
    properties={
        "contentType": {"pattern": CONTENT_TYPE, "description": "Else guessed from the name."},
        "contentId": {
            "pattern": f"^{attachments.CONTENT_ID.pattern}$",
            "description": "Makes it an image that the HTML shows by `cid:`.",
        },
    },
)
refine(
    inputs.SendInput,
    properties={
        "attachments": {"maxItems": attachments.MAX_FILES},
        "templateId": {"description": "A template's id or alias."},
        "metadata": {"description": f"Of your own, at most {inputs.MAX_METADATA_BYTES:,} bytes."},
        "scheduledFor": {"description": "Later than now, at most 30 days ahead."},
        "idempotencyKey": {"description": "Of one key a workspace accepts one request."},
        "dryRun": {"description": "Check everything, send nothing."},
    },
    anyOf=[
        {
            "title": "With html",
            "required": ["html", "subject"],
            "properties": {"html": SOME_TEXT, "subject": SOME_TEXT},
        },
        {
            "title": "With text",
            "required": ["text", "subject"],
            "properties": {"text": SOME_TEXT, "subject": SOME_TEXT},
        },
        {"title": "With a template", "required": ["templateId"], "properties": {"templateId": SOME_TEXT}},
    ],
)
refine(
    inputs.BatchInput,
    properties={
        "recipients": {"maxItems": inputs.MAX_BATCH},
        "templateId": {"description": "A template's id or alias."},
        "subject": {"description": "In place of the template's; rendered like it."},
    },
)
refine(
    EmailSerializer,
    properties={
        "to": {"description": "The recipients in To, joined with a comma and a blank."},
        "htmlContent": {"type": "string", "description": "Without footer and tracking."},
        "text": {"type": "string"},
        "errorMessage": {"description": "Of the last recipient that it could not be delivered to."},
    },
)
refine(
    EventSerializer,
    properties={
        "payload": {
            "properties": {"emailId": {"type": "string"}, "to": {"type": "string"}},
            "required": ["emailId"],
        },
        "sentToWebhook": {"description": "Whether an endpoint has taken it."},
    },
)
