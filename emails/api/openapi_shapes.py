"""OpenAPI schemas of `/v1/emails`: responses without a serializer, and refinements of input fields."""

from typing import Any

from rest_framework import serializers

from api.fields import UtcDateTimeField
from api.schema_fields import ADDRESS, ONE_LINE, refine_schema, set_field_schema
from emails.api import attachments, fields, inputs
from emails.api.serializers import EmailSerializer, EventSerializer
from emails.states import EmailStatus
from suppressions.errors import RecipientSuppressed

SOME_TEXT = {"not": {"type": "null"}, "minLength": 1}
ADDRESSES = {"type": "array", "items": ADDRESS, "maxItems": inputs.MAX_RECIPIENTS}
NOTHING_BUT_DOTS = r"^(?=.*[^. ])[^\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069/\\]+$"
# ECMAScript has no \\U escape.
CONTENT_TYPE = f"^{attachments.CONTENT_TYPE.pattern}$".replace("\\U0010ffff", "\\uffff")
BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


class WarningSerializer(serializers.Serializer[Any]):
    """A part of the request that was accepted but may be a mistake."""

    code = serializers.CharField()
    message = serializers.CharField()
    variables = serializers.ListField(child=serializers.CharField(), required=False)
    variable = serializers.CharField(required=False)
    indexes = serializers.ListField(child=serializers.IntegerField(), required=False)


class AcceptedSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    status = serializers.ChoiceField([EmailStatus.QUEUED.value, EmailStatus.SCHEDULED.value])
    createdAt = UtcDateTimeField()  # noqa: N815
    warnings = WarningSerializer(many=True, required=False)


class DryRunSerializer(serializers.Serializer[Any]):
    valid = serializers.BooleanField()
    subject = serializers.CharField()
    html = serializers.CharField()
    text = serializers.CharField()
    warnings = WarningSerializer(many=True)


class BatchEmailSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField(help_text="The index of the recipient in the request, from 0.")
    to = serializers.CharField()
    id = serializers.CharField()


class BatchRejectionSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField(help_text="The index of the recipient in the request, from 0.")
    to = serializers.CharField()
    code = serializers.ChoiceField([RecipientSuppressed.code])


class BatchAcceptedSerializer(serializers.Serializer[Any]):
    queued = serializers.IntegerField(help_text="The number of accepted emails.")
    ids = serializers.ListField(child=serializers.CharField())
    emails = BatchEmailSerializer(many=True)
    rejected = BatchRejectionSerializer(many=True)
    warnings = WarningSerializer(many=True, required=False)


class RescheduledSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    status = serializers.ChoiceField(EmailStatus.values)
    createdAt = UtcDateTimeField()  # noqa: N815
    scheduledFor = UtcDateTimeField()  # noqa: N815


class CancelledSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    status = serializers.ChoiceField([EmailStatus.CANCELLED.value])


class TimelineSerializer(serializers.Serializer[Any]):
    locals()["data"] = EventSerializer(many=True)


set_field_schema(fields.HeaderField, {"type": "string", "pattern": ONE_LINE})
set_field_schema(fields.BodyField, {"type": "string", "maxLength": fields.BodyField.max_bytes})
set_field_schema(fields.AddressListField, ADDRESSES)
set_field_schema(fields.RecipientsField, {"anyOf": [ADDRESS, {**ADDRESSES, "minItems": 1}]})
set_field_schema(inputs.ScheduleField, {"type": "string", "format": "date-time"})
set_field_schema(
    fields.HeadersField,
    {
        "type": "object",
        "description": "Custom headers. Headers that Postrider sets, or that mail servers act on, are refused.",
        "maxProperties": fields.MAX_HEADERS,
        "propertyNames": {"pattern": f"^{fields.HEADER_NAME.pattern}$"},
        "additionalProperties": {"type": "string", "maxLength": fields.MAX_HEADER_LENGTH, "pattern": ONE_LINE},
    },
)
set_field_schema(attachments.FileNameField, {"type": "string", "pattern": NOTHING_BUT_DOTS})
set_field_schema(attachments.Base64Field, {"type": "string", "contentEncoding": "base64", "pattern": BASE64})

refine_schema(
    attachments.FileInput,
    properties={
        "contentType": {"pattern": CONTENT_TYPE, "description": "Defaults to a type guessed from the filename."},
        "contentId": {
            "pattern": f"^{attachments.CONTENT_ID.pattern}$",
            "description": "Makes the attachment an inline image, referenced by `cid:` in the HTML.",
        },
    },
)
refine_schema(
    inputs.SendInput,
    properties={
        "attachments": {"maxItems": attachments.MAX_FILES},
        "templateId": {"description": "A template's id or alias."},
        "metadata": {"description": f"Custom data, at most {inputs.MAX_METADATA_BYTES:,} bytes."},
        "scheduledFor": {"description": "A time in the future, at most 30 days ahead."},
        "idempotencyKey": {"description": "Each key accepts one request per workspace."},
        "dryRun": {"description": "Check the request without sending."},
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
refine_schema(
    inputs.BatchInput,
    properties={
        "recipients": {"maxItems": inputs.MAX_BATCH},
        "templateId": {"description": "A template's id or alias."},
        "subject": {"description": "Overrides the template's subject and is rendered the same way."},
    },
)
refine_schema(
    EmailSerializer,
    properties={
        "to": {"description": "The To addresses, joined with a comma and a space."},
        "htmlContent": {"type": "string", "description": "Without footer and tracking."},
        "text": {"type": "string"},
        "errorMessage": {"description": "The most recent delivery error of any recipient."},
    },
)
refine_schema(
    EventSerializer,
    properties={
        "payload": {
            "properties": {"emailId": {"type": "string"}, "to": {"type": "string"}},
            "required": ["emailId"],
        },
        "sentToWebhook": {"description": "Whether a webhook endpoint accepted the event."},
    },
)
