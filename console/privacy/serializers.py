"""Serializers of erasures."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from console.privacy.models import Erasure
from console.privacy.receipts import KEPT, KINDS
from core.api.fields import CountField, RecipientField, RowInput, RowSerializer, UtcDateTimeField


class ErasureInput(RowInput):
    email = RecipientField(help_text="The address of the person.")

    class Meta:
        model = Erasure
        fields = ("email", "keepSuppression")


class ErasedCountsSerializer(serializers.Serializer[Erasure]):
    """Numbers of erased records of each kind."""

    def get_fields(self) -> dict[str, Any]:
        return {kind: CountField(help_text=f"The number of {text}.") for kind, text in KINDS.items()}


class KeptRecordSerializer(serializers.Serializer[Erasure]):
    """A kind of record that stays."""

    kind = serializers.ChoiceField(list(KEPT), help_text="What stays.")
    reason = serializers.CharField(help_text="Why it stays, for people.")


class ErasureSerializer(RowSerializer[Erasure]):
    """An erasure, and its receipt once it is completed."""

    status = serializers.ChoiceField(
        ["processing", "completed"], help_text="`processing` until everything is erased, then `completed`."
    )
    email = serializers.CharField(help_text="The address of the person; empty once the erasure is completed.")
    deleted = ErasedCountsSerializer(help_text="What was erased so far.")
    kept = serializers.SerializerMethodField(help_text="What stays, and why.")
    backupsUntil = UtcDateTimeField(
        source="backups_until",
        allow_null=True,
        help_text="The time from which backups do not have the data; null before the erasure is completed.",
    )

    class Meta:
        model = Erasure
        fields = (
            "id", "status", "email", "keepSuppression", "deleted", "waiting", "kept", "createdAt", "completedAt",
            "backupsUntil",
        )  # fmt: skip

    @extend_schema_field(KeptRecordSerializer(many=True))
    def get_kept(self, erasure: Erasure) -> list[dict[str, str]]:
        return [{"kind": kind, "reason": reason} for kind, reason in KEPT.items()]
