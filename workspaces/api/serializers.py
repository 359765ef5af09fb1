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


class KeySerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    scope = serializers.ChoiceField(ApiKey.Scope.choices)


class QuotaSerializer(serializers.Serializer[Any]):
    limit = serializers.IntegerField(allow_null=True)
    used = serializers.IntegerField()
    remaining = serializers.IntegerField(allow_null=True)
    resetsAt = UtcDateTimeField(source="resets_at")  # noqa: N815 - a wire name


class MeSerializer(serializers.Serializer[Any]):
    workspace = WorkspaceSerializer()
    key = KeySerializer()
    quota = QuotaSerializer()
