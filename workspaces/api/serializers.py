"""Response serializers of `GET /v1/me`."""

from typing import Any

from rest_framework import serializers

from api.fields import UtcDateTimeField
from workspaces.models import ApiKey
from workspaces.plans import PLANS


class WorkspaceSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    plan = serializers.ChoiceField(list(PLANS))


class KeyLimitsSerializer(serializers.Serializer[Any]):
    """The limits of an API key; an empty value is no limit."""

    domains = serializers.ListField(child=serializers.CharField())
    networks = serializers.ListField(child=serializers.CharField())
    templates = serializers.ListField(child=serializers.CharField())
    requestsPerSecond = serializers.IntegerField(source="requests_per_second", allow_null=True)  # noqa: N815


class KeySerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    scope = serializers.ChoiceField(ApiKey.Scope.choices)
    test = serializers.BooleanField(source="is_test")
    limits = KeyLimitsSerializer()


class QuotaSerializer(serializers.Serializer[Any]):
    limit = serializers.IntegerField(allow_null=True)
    used = serializers.IntegerField()
    remaining = serializers.IntegerField(allow_null=True)
    resetsAt = UtcDateTimeField(source="resets_at")  # noqa: N815 - a wire name


class MeSerializer(serializers.Serializer[Any]):
    workspace = WorkspaceSerializer()
    key = KeySerializer()
    quota = QuotaSerializer()
