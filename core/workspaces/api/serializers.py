"""Response serializers of `GET /v1/me`."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from core.api.fields import AttributesSerializer, TextListField, UtcDateTimeField
from core.workspaces.models import ApiKey

LIMIT_TEXTS = {
    "domains": "The domains that the key can send from. Requires the scope `sending_access` or `sending_only`.",
    "networks": "The networks from which the key can be used: addresses, or ranges such as 203.0.113.0/24.",
    "templates": "The ids or aliases of the templates that the key can send with; it cannot send without a template. "
    "Requires the scope `sending_access` or `sending_only`.",
    "streams": "The ids of the streams that the key can send in; with only one, it is the default. Requires the scope "
    "`sending_access` or `sending_only`.",
    "requestsPerSecond": "The number of requests per second, also as a burst; null for the limit of the workspace.",
}


class WorkspaceSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    plan = serializers.ChoiceField(list(settings.PLANS))


class KeyLimitsSerializer(AttributesSerializer[Any]):
    """The limits of an API key; an empty value is no limit."""

    optional_fields = frozenset({"streams"})

    domains = TextListField(help_text=LIMIT_TEXTS["domains"])
    networks = TextListField(help_text=LIMIT_TEXTS["networks"])
    templates = TextListField(help_text=LIMIT_TEXTS["templates"])
    requestsPerSecond = serializers.IntegerField(allow_null=True, help_text=LIMIT_TEXTS["requestsPerSecond"])
    streams = TextListField(help_text=f"{LIMIT_TEXTS['streams']} Absent without this limit.")


class KeySerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    scope = serializers.ChoiceField(ApiKey.Scope.choices)
    test = serializers.BooleanField(
        source="is_test", help_text="Whether it is a test key: nothing is sent, and it does not count."
    )
    limits = KeyLimitsSerializer()


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
            "Who gets the emails of this installation: `all` for their recipients, `captured` if nobody does, or "
            "`redirect:` with the address that gets them all."
        ),
    )
