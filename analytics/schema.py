"""`/v1/analytics` in the OpenAPI document."""

from drf_spectacular.utils import extend_schema_view

from analytics.serializers import DEFAULT_DAYS, MAX_DAYS, AnalyticsSerializer, DaysSerializer
from api.schema import MOMENT, VALIDATION_ERROR, answer, query
from workspaces.api.schema import READING, keyed_operation

ANALYTICS = {
    "from": "2026-11-01T00:00:00.000Z",
    "to": "2026-11-21T07:00:00.000Z",
    "total": 1200,
    "breakdown": {"delivered": 1170, "bounced": 12, "opened": 600, "clicked": 150},
    "rates": {"deliveryRate": 0.975, "bounceRate": 0.01, "openRate": 0.5, "clickRate": 0.125},
}
DAYS = {
    "data": [
        {"date": "2026-11-20", "total": 0, "delivered": 0, "bounced": 0, "opened": 0},
        {"date": "2026-11-21", "total": 80, "delivered": 78, "bounced": 1, "opened": 31},
    ]
}

analytics_schema = extend_schema_view(
    get=keyed_operation(
        "getAnalytics",
        "Get totals and rates",
        "Counts the emails that were created in a range, without cancelled ones and those that are still scheduled, "
        "and how many of them had each event at least once: an email that was clicked counts as opened and as "
        "delivered, too. A rate is its count divided by the total, and 0 when there is none. The range is in whole "
        "hours of UTC: "
        "`from` is rounded down, `to` up, and the answer tells both. Emails that retention has deleted still count.",
        scope=READING,
        answers=[answer(200, AnalyticsSerializer, "The figures.", example=ANALYTICS)],
        problems=[VALIDATION_ERROR],
        parameters=[
            query("from", MOMENT, "The first hour or day; without it, all since the workspace began."),
            query("to", MOMENT, "Up to this moment, or to the end of this day; without it, up to now."),
        ],
    )
)
daily_schema = extend_schema_view(
    get=keyed_operation(
        "getDailyVolume",
        "Get the volume of each day",
        "Counts by the day, in UTC, on which emails were created: oldest first, today included, days without emails "
        "with zeros.",
        scope=READING,
        answers=[answer(200, DaysSerializer, "The days.", example=DAYS)],
        problems=[VALIDATION_ERROR],
        parameters=[
            query(
                "days",
                {"type": "integer", "minimum": 1, "maximum": MAX_DAYS, "default": DEFAULT_DAYS},
                "How many days.",
            )
        ],
    )
)
