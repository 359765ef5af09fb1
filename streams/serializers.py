"""Serializers of streams."""

from typing import Any

from rest_framework import serializers

from core.api.fields import (
    AllOptional,
    CountField,
    NameField,
    OptionField,
    PatternField,
    RowSerializer,
    StrictBooleanField,
    StrictSerializer,
    TextField,
    help_texts,
)
from core.workspaces.key_limits import STREAM as SLUG
from streams.models import Stream

UNSUBSCRIBE_TEXT = (
    "`link`: a link in the footer and List-Unsubscribe headers. `headers`: only the headers. `none`: neither, for "
    "transactional streams only."
)
TEXTS = {
    "id": "The id of the stream, as `stream` of an email.",
    "name": "The name of the stream. Recipients see it.",
    "description": "What the stream is for. Recipients see it if the stream is public.",
    "kind": "`transactional`, or `bulk` for newsletters and announcements.",
    "unsubscribe": UNSUBSCRIBE_TEXT,
    "scope": "Whether an unsubscribe or a complaint blocks this stream or the whole workspace.",
    "ownBounces": "Whether a hard bounce blocks this stream only, instead of the workspace.",
    "ignoresUnsubscribes": "Whether the stream also reaches addresses that unsubscribed from the whole workspace. "
    "Bounces, complaints and manual suppressions always block.",
    "public": "Whether the preference page of recipients lists the stream.",
    "priority": "The order within the workspace's share of the queue.",
    "trackOpens": "Whether opens are tracked, unless an email says otherwise.",
    "trackClicks": "Whether clicks are tracked, unless an email says otherwise.",
    "transportRoute": "The operator's route of transports; absent for the usual one.",
    "archivedAt": "The time when the stream was archived; null if it accepts emails.",
    "pausedAt": "The time when the stream was paused; null if it is not.",
    "pausedReason": "Why the stream is paused; empty if it is not.",
}


class SlugField(PatternField):
    """The id of a new stream."""

    default_error_messages = {"invalid": "An id consists of 1 to 40 characters of a-z, 0-9 and hyphens."}

    def __init__(self, **options: Any) -> None:
        super().__init__(rf"^{SLUG.pattern}\Z", max_length=40, **options)


def _flag(name: str, source: str | None = None) -> StrictBooleanField:
    return StrictBooleanField(source=source, required=False, help_text=TEXTS[name])


class TransportRouteField(TextField):
    """The name of a route; null and an empty text are the usual one."""

    def run_validation(self, data: Any = serializers.empty) -> Any:
        return "" if data is None else super().run_validation(data)


class StreamFields(StrictSerializer):
    """The fields that can be changed."""

    name = NameField(help_text=TEXTS["name"])
    description = TextField(required=False, allow_blank=True, max_length=500, help_text=TEXTS["description"])
    unsubscribe = OptionField(Stream.Unsubscribe.choices, required=False, help_text=TEXTS["unsubscribe"])
    scope = OptionField(Stream.SuppressionScope.choices, required=False, help_text=TEXTS["scope"])
    ownBounces = _flag("ownBounces", "own_bounces")
    ignoresUnsubscribes = _flag("ignoresUnsubscribes", "ignores_unsubscribes")
    public = _flag("public")
    priority = OptionField(Stream.Priority.choices, required=False, help_text=TEXTS["priority"])
    trackOpens = _flag("trackOpens", "track_opens")
    trackClicks = _flag("trackClicks", "track_clicks")
    transportRoute = TransportRouteField(
        source="transport_route",
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=30,
        help_text="The operator's route of transports, if the workspace may use several; null for the usual one.",
    )


class StreamInput(StreamFields):
    id = SlugField(source="slug", help_text=TEXTS["id"])
    kind = OptionField(Stream.Kind.choices, required=False, help_text=TEXTS["kind"])


class StreamChanges(AllOptional, StreamFields):
    """Changes of a stream; its id and kind stay."""


class StreamSerializer(RowSerializer[Stream]):
    optional_fields = frozenset({"transportRoute"})
    id = serializers.CharField(source="slug", help_text=TEXTS["id"])

    class Meta:
        model = Stream
        fields = (
            "id", "name", "description", "kind", "unsubscribe", "scope", "ownBounces", "ignoresUnsubscribes", "public",
            "priority", "trackOpens", "trackClicks", "transportRoute", "archivedAt", "pausedAt", "pausedReason",
            "createdAt",
        )  # fmt: skip
        extra_kwargs = help_texts(**{name: text for name, text in TEXTS.items() if name != "id"})


class StreamCountsSerializer(serializers.Serializer[Any]):
    total = CountField(help_text="The number of emails, without cancelled and still scheduled ones.")
    delivered = CountField(help_text="The number of these emails that were delivered.")
    bounced = CountField(help_text="The number of these emails that bounced.")
    opened = CountField(help_text="The number of these emails that were opened.")
    clicked = CountField(help_text="The number of these emails that were clicked.")
    complained = CountField(help_text="The number of recipients that reported an email as spam.")


class CountedStreamSerializer(StreamSerializer):
    counts = StreamCountsSerializer(help_text="Counts of the last 30 UTC days, which include today.")

    class Meta(StreamSerializer.Meta):
        fields = (*StreamSerializer.Meta.fields, "counts")  # type: ignore[assignment]  # one more than its parent's
