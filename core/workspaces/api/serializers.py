"""Response serializers of `GET /v1/me`, and recipient rules in requests."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from core.api.errors import InvalidFields
from core.api.fields import (
    ADDRESS_SCHEMA,
    AttributesSerializer,
    EntriesField,
    OptionField,
    StrictSerializer,
    TextField,
    TextListField,
    UtcDateTimeField,
    WholeNumberField,
)
from core.api.schema_fields import refine_schema
from core.lib.translation import translate
from core.workspaces.models import APPROVAL_REQUIRED, ApiKey
from core.workspaces.recipients.caps import MAX_CAPS, MAX_COUNT, MAX_SECONDS, Cap, Exceeding, Per
from core.workspaces.recipients.rules import FIELD as RULES_FIELD
from core.workspaces.recipients.rules import MAX_ALLOWED, MAX_ENTRY_LENGTH, OTHERWISE, read_rules

LIMIT_TEXTS = {
    "domains": "The domains that the key can send from. Requires the scope `sending_access` or `sending_only`.",
    "networks": "The networks from which the key can be used: addresses, or ranges such as 203.0.113.0/24.",
    "templates": "The ids or aliases of the templates that the key can send with; it cannot send without a template. "
    "Requires the scope `sending_access` or `sending_only`.",
    "streams": "The ids of the streams that the key can send in; with only one, it is the default. Requires the scope "
    "`sending_access` or `sending_only`.",
    "requestsPerSecond": "The number of requests per second, also as a burst; null for the limit of the workspace.",
}


RULES_TEXTS = {
    "workspace": "The recipients that get email of the workspace, and the treatment of others. Those of the key apply, "
    "too.",
    "key": "The recipients that get email of the key, and the treatment of others. Those of the workspace apply, too.",
}
RULE_TEXTS = {
    "allow": "The recipients that are allowed: addresses, domains such as `@example.com`, and `@*.example.com` for all "
    "subdomains. Everybody if absent, nobody if empty.",
    "otherwise": "What happens to others: they are refused, captured by the built-in inbox, or their messages go to "
    "`redirectTo`.",
    "redirectTo": "The address that gets the messages of others, with `redirect` only.",
    "caps": "How many emails each recipient gets in some time.",
}

CAP_TEXTS = {
    "count": "The number of emails.",
    "seconds": "The time in which a recipient gets at most so many.",
    "per": "What is counted: the emails to a recipient, or those with the same template.",
    "exceeding": "What happens to further emails: they are refused, or accepted and cancelled.",
}


class CapInput(StrictSerializer):
    """A cap, read into Cap."""

    count = WholeNumberField(min_value=1, max_value=MAX_COUNT, help_text=CAP_TEXTS["count"])
    seconds = WholeNumberField(min_value=1, max_value=MAX_SECONDS, help_text=CAP_TEXTS["seconds"])
    per = OptionField(choices=[*Per], required=False, help_text=CAP_TEXTS["per"])
    exceeding = OptionField(choices=[*Exceeding], required=False, help_text=CAP_TEXTS["exceeding"])

    def validate(self, attrs: dict[str, Any]) -> Any:
        return Cap.from_json(attrs)


class CapSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField(help_text=CAP_TEXTS["count"])
    seconds = serializers.IntegerField(help_text=CAP_TEXTS["seconds"])
    per = serializers.ChoiceField([*Per], help_text=CAP_TEXTS["per"])
    exceeding = serializers.ChoiceField([*Exceeding], help_text=CAP_TEXTS["exceeding"])


class RecipientRulesInput(StrictSerializer):
    """Recipient rules, read into RecipientRules."""

    allow = EntriesField(
        child=TextField(max_length=MAX_ENTRY_LENGTH),
        required=False,
        max_length=MAX_ALLOWED,
        help_text=RULE_TEXTS["allow"],
    )
    otherwise = OptionField(choices=OTHERWISE, required=False, default=OTHERWISE[-1], help_text=RULE_TEXTS["otherwise"])
    redirectTo = TextField(
        source="redirect_to", required=False, max_length=MAX_ENTRY_LENGTH, help_text=RULE_TEXTS["redirectTo"]
    )
    caps = EntriesField(child=CapInput(), required=False, max_length=MAX_CAPS, help_text=RULE_TEXTS["caps"])

    def validate(self, attrs: dict[str, Any]) -> Any:
        try:
            return read_rules(**attrs)
        except InvalidFields as problem:
            errors = {
                error["field"].removeprefix(f"{RULES_FIELD}."): [
                    serializers.ErrorDetail(translate(error["detail"]), code=error["code"])
                ]
                for error in problem.members["errors"]
            }
            raise serializers.ValidationError(errors) from problem


refine_schema(
    RecipientRulesInput,
    properties={"redirectTo": {"format": ADDRESS_SCHEMA["format"], "minLength": 1}},
    **{
        "if": {"properties": {"otherwise": {"type": "string", "const": "redirect"}}, "required": ["otherwise"]},
        "then": {"required": ["redirectTo"]},
        "else": {"not": {"required": ["redirectTo"]}},
        # Rules without an effect.
        "not": {"not": {"required": ["allow"]}, "properties": {"caps": {"maxItems": 0}}},
    },
)


class RecipientRulesSerializer(serializers.Serializer[Any]):
    """Recipient rules, which are stored as they are shown."""

    allow = TextListField(required=False, help_text=RULE_TEXTS["allow"])
    otherwise = serializers.ChoiceField(OTHERWISE, help_text=RULE_TEXTS["otherwise"])
    redirectTo = serializers.CharField(required=False, help_text=RULE_TEXTS["redirectTo"])
    caps = CapSerializer(many=True, required=False, help_text=RULE_TEXTS["caps"])

    def to_representation(self, instance: Any) -> Any:
        return instance


class WorkspaceSerializer(AttributesSerializer[Any]):
    optional_fields = frozenset({"recipientRules"})

    id = serializers.CharField()
    name = serializers.CharField()
    plan = serializers.ChoiceField(list(settings.PLANS))
    recipientRules = RecipientRulesSerializer(
        required=False, help_text=f"{RULES_TEXTS['workspace']} Absent without rules."
    )


class KeyLimitsSerializer(AttributesSerializer[Any]):
    """The limits of an API key; an empty value is no limit."""

    optional_fields = frozenset({"streams"})

    domains = TextListField(help_text=LIMIT_TEXTS["domains"])
    networks = TextListField(help_text=LIMIT_TEXTS["networks"])
    templates = TextListField(help_text=LIMIT_TEXTS["templates"])
    requestsPerSecond = serializers.IntegerField(allow_null=True, help_text=LIMIT_TEXTS["requestsPerSecond"])
    streams = TextListField(help_text=f"{LIMIT_TEXTS['streams']} Absent without this limit.")


APPROVAL = "`required` if the emails of the key wait for approval; absent if not."


class KeySerializer(AttributesSerializer[Any]):
    optional_fields = frozenset({"approval", "recipientRules"})

    id = serializers.CharField()
    name = serializers.CharField()
    scope = serializers.ChoiceField(ApiKey.Scope.choices)
    test = serializers.BooleanField(
        source="is_test", help_text="Whether it is a test key: nothing is sent, and it does not count."
    )
    limits = KeyLimitsSerializer()
    approval = serializers.ChoiceField([APPROVAL_REQUIRED], help_text=APPROVAL)
    recipientRules = RecipientRulesSerializer(required=False, help_text=f"{RULES_TEXTS['key']} Absent without rules.")


class QuotaSerializer(AttributesSerializer[Any]):
    limit = serializers.IntegerField(allow_null=True, help_text="The number of emails per month; null if unlimited.")
    used = serializers.IntegerField(help_text="The number of emails used this month.")
    remaining = serializers.IntegerField(
        allow_null=True, help_text="The number of emails left this month; null if unlimited."
    )
    resetsAt = UtcDateTimeField(help_text="The time at which the quota starts again.")


class MeSerializer(serializers.Serializer[Any]):
    workspace = WorkspaceSerializer(help_text="The workspace of the key.")
    key = KeySerializer(help_text="The API key of the request.")
    quota = QuotaSerializer(help_text="The monthly quota of emails.")
    recipients = serializers.CharField(
        help_text=(
            "Who gets the emails of this installation: `all` for their recipients, `captured` if nobody does, "
            "`redirect:` with the address that gets them all, or `rules` if the operator has rules for all workspaces."
        ),
    )
