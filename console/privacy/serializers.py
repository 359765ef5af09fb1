"""Serializers of erasures and exports of people."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from console.privacy.links import download_url
from console.privacy.models import Erasure, SubjectExport
from console.privacy.receipts import EXPORTED, KEPT, KINDS
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


class SubjectExportInput(RowInput):
    email = RecipientField(help_text="The address of the person.")

    class Meta:
        model = SubjectExport
        fields = ("email",)


class ExportedCountsSerializer(serializers.Serializer[SubjectExport]):
    """Numbers of records of each kind."""

    def get_fields(self) -> dict[str, Any]:
        return {kind: CountField(help_text=f"The number of {text}.") for kind, text in EXPORTED.items()}


class SubjectExportSerializer(RowSerializer[SubjectExport]):
    """An export of a person."""

    status = serializers.ChoiceField(
        ["processing", "completed", "expired"],
        help_text="`processing` until the file is complete, `completed`, and `expired` once the file is deleted.",
    )
    email = serializers.CharField(help_text="The address of the person; empty once the export has expired.")
    records = ExportedCountsSerializer(help_text="What the file has so far.")
    messagesLeftOut = CountField(source="left_out")
    downloadUrl = serializers.SerializerMethodField(
        help_text="Where the file can be downloaded with a key of the scope `full_access`; null while there is none."
    )

    class Meta:
        model = SubjectExport
        fields = (
            "id", "status", "email", "records", "messagesLeftOut", "downloadUrl", "createdAt", "completedAt",
            "expiresAt",
        )  # fmt: skip

    @extend_schema_field({"type": ["string", "null"]})
    def get_downloadUrl(self, export: SubjectExport) -> str | None:  # noqa: N802 - the name on the wire
        return download_url(export) if export.status == "completed" else None
