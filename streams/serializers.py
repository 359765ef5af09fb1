"""Serializers of streams."""

from typing import Any

from rest_framework import serializers

from core.api.fields import (
    AllOptional,
    CountField,
    DeliverWithinField,
    NameField,
    OptionalTextField,
    OptionField,
    PatternField,
    RowInput,
    RowSerializer,
    WholeNumberField,
)
from core.workspaces.key_limits import STREAM as SLUG
from core.workspaces.models import APPROVAL_REQUIRED
from streams.models import Stream

# Emails have them in two bytes.
MAX_CONTENT_HOURS = 32_767


class SlugField(PatternField):
    """The id of a new stream."""

    default_error_messages = {"invalid": "An id consists of 1 to 40 characters of a-z, 0-9 and hyphens."}

    def __init__(self, **options: Any) -> None:
        super().__init__(rf"^{SLUG.pattern}\Z", max_length=40, **options)


class ApprovalField(OptionField):
    """`required`, or null; stored as an empty text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=[APPROVAL_REQUIRED], required=False, allow_null=True, **options)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        return "" if data is None else super().run_validation(data)


class StreamFields(RowInput):
    """The fields that can be changed."""

    name = NameField()
    transportRoute = OptionalTextField(
        max_length=30,
        help_text="The operator's route of transports, if the workspace may use several; null for the usual one.",
    )

    contentRetention = WholeNumberField(
        source="content_retention",
        required=False,
        allow_null=True,
        min_value=0,
        max_value=MAX_CONTENT_HOURS,
        help_text="The hours after the last outcome for which the content of an email is kept, at most the retention "
        "of the plan; null as long as the email.",
    )

    deliverWithin = DeliverWithinField(
        source="deliver_within",
        help_text="The seconds from acceptance, or from the scheduled time, after which an email that has no expiry of "
        "its own is not sent any more; null for any time.",
    )

    approval = ApprovalField(
        help_text="`required`: its emails wait until a person approves them. Null: they do not, which is the default."
    )

    class Meta:
        model = Stream
        fields: tuple[str, ...] = (
            "name", "description", "unsubscribe", "scope", "ownBounces", "ignoresUnsubscribes", "public", "priority",
            "trackOpens", "trackClicks", "trackingDetail", "transportRoute", "contentRetention", "sensitive",
            "deliverWithin", "approval",
        )  # fmt: skip


class StreamInput(StreamFields):
    id = SlugField(source="slug")

    class Meta(StreamFields.Meta):
        fields = (*StreamFields.Meta.fields, "id", "kind")


class StreamChanges(AllOptional, StreamFields):
    """Changes of a stream; its id and kind stay."""


class StreamSerializer(RowSerializer[Stream]):
    optional_fields = frozenset({"approval", "transportRoute"})
    id = serializers.CharField(source="slug")

    class Meta:
        model = Stream
        fields = (
            "id", "name", "description", "kind", "unsubscribe", "scope", "ownBounces", "ignoresUnsubscribes", "public",
            "priority", "trackOpens", "trackClicks", "trackingDetail", "transportRoute", "contentRetention",
            "sensitive", "deliverWithin", "approval", "archivedAt", "pausedAt", "pausedReason", "createdAt",
        )  # fmt: skip


class StreamCountsSerializer(serializers.Serializer[Any]):
    total = CountField(help_text="The number of emails, without cancelled and still scheduled ones.")
    delivered = CountField(help_text="The number of these emails that were delivered.")
    bounced = CountField(help_text="The number of these emails that bounced.")
    opened = CountField(help_text="The number of these emails that were opened.")
    clicked = CountField(help_text="The number of these emails that were clicked.")
    complained = CountField(help_text="The number of recipients that reported an email as spam.")


class CountedStreamSerializer(StreamSerializer):
    counts = StreamCountsSerializer(help_text="Counts of the last 30 UTC days, which include today.")
