"""Analytics queries and responses."""

from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers

from analytics.services import DAY, DailyVolume, day_of
from api.fields import CountField, DateTimeBoundField, UtcDateTimeField, invalid_range, is_reversed
from counters import counters

MAX_DAYS = 90
DEFAULT_DAYS = 14
# Years 1 and 9999 are common open ends; an offset may move them out of the range of datetime.
FIRST_HOUR = datetime.min.replace(tzinfo=UTC)
LAST_HOUR = datetime(9999, 12, 31, 23, tzinfo=UTC)


STREAM = "The id of a stream, or `main`: only its emails are counted."


class StreamField(serializers.CharField):
    """The stream of a query; empty for all of them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(default="", allow_blank=True, max_length=40, **options)


class HoursQuery(serializers.Serializer[Any]):
    """A range in whole UTC hours: `from` rounded down, `to` up."""

    locals()["from"] = DateTimeBoundField(
        is_end=False, help_text="The first hour or day. Defaults to the creation of the workspace."
    )
    to = DateTimeBoundField(
        is_end=True, help_text="The end of the range: a time, or a date, which is included. Defaults to now."
    )

    stream = StreamField(help_text=f"{STREAM} The range then consists of whole UTC days.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if is_reversed(attrs):
            raise serializers.ValidationError({"from": [invalid_range()]})
        start, end, stream = attrs.get("from"), attrs.get("to"), attrs["stream"]
        down, up = (_day_down, _day_up) if stream else (_hour_down, _hour_up)
        return {"start": down(start) if start else None, "end": up(end) if end else None, "stream": stream}


class DaysQuery(serializers.Serializer[Any]):
    days = serializers.IntegerField(
        min_value=1, max_value=MAX_DAYS, default=DEFAULT_DAYS, help_text="The number of days."
    )
    stream = StreamField(help_text=STREAM)


class BreakdownSerializer(serializers.Serializer[Any]):
    delivered = CountField(help_text="The number of these emails that were delivered.")
    bounced = CountField(help_text="The number of these emails that bounced.")
    opened = CountField(help_text="The number of these emails that were opened.")
    clicked = CountField(help_text="The number of these emails that were clicked.")


class RatesSerializer(serializers.Serializer[Any]):
    deliveryRate = serializers.FloatField(
        source="delivered", min_value=0, max_value=1, help_text="Delivered emails divided by all emails."
    )
    bounceRate = serializers.FloatField(
        source="bounced", min_value=0, max_value=1, help_text="Bounced emails divided by all emails."
    )
    openRate = serializers.FloatField(
        source="opened", min_value=0, max_value=1, help_text="Opened emails divided by all emails."
    )
    clickRate = serializers.FloatField(
        source="clicked", min_value=0, max_value=1, help_text="Clicked emails divided by all emails."
    )


class AnalyticsSerializer(serializers.Serializer[Any]):
    locals()["from"] = UtcDateTimeField(
        source="start", help_text="The start of the range, rounded down to the hour, or to the day of a stream."
    )
    to = UtcDateTimeField(
        source="end", help_text="The end of the range, rounded up to the hour, or to the day of a stream."
    )
    total = CountField(
        help_text="The number of emails created in the range, without cancelled and still scheduled ones."
    )
    breakdown = BreakdownSerializer(
        source="reached", help_text="The number of these emails that had each event at least once."
    )
    rates = RatesSerializer(help_text="Each of these counts divided by `total`; 0 if `total` is 0.")


class DaySerializer(serializers.Serializer[Any]):
    date = serializers.DateField(help_text="The day, in UTC.")
    total = CountField(help_text="The number of emails created on this day.")
    delivered = CountField(source="reached.delivered", help_text="The number of these emails that were delivered.")
    bounced = CountField(source="reached.bounced", help_text="The number of these emails that bounced.")
    opened = CountField(source="reached.opened", help_text="The number of these emails that were opened.")

    def to_representation(self, instance: DailyVolume) -> dict[str, Any]:
        # Rendering 90 days field by field takes 3 ms.
        reached = instance.reached
        return {
            "date": instance.date.isoformat(),
            "total": instance.total,
            "delivered": reached["delivered"],
            "bounced": reached["bounced"],
            "opened": reached["opened"],
        }


class DaysSerializer(serializers.Serializer[Any]):
    locals()["data"] = DaySerializer(many=True, help_text="The days, oldest first, including today.")


def _hour_down(time: datetime) -> datetime:
    return counters.hour_of(min(max(time, FIRST_HOUR), LAST_HOUR))


def _hour_up(time: datetime) -> datetime:
    hour = _hour_down(time)
    return hour + counters.HOUR if hour < min(time, LAST_HOUR) else hour


def _day_down(time: datetime) -> datetime:
    return day_of(min(max(time, FIRST_HOUR), LAST_HOUR))


def _day_up(time: datetime) -> datetime:
    day = _day_down(time)
    return day + DAY if day < min(time, counters.FOREVER) else day
