"""`/v1/analytics` in the OpenAPI document."""

from drf_spectacular.utils import extend_schema_view

from analytics.serializers import DEFAULT_DAYS, MAX_DAYS, AnalyticsSerializer, DaysSerializer
from api.schema import DATE_OR_DATETIME, VALIDATION_ERROR, query, response
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
        "Counts the emails created in a range, except cancelled and still scheduled ones, and the emails among them "
        "that had each event at least once. A clicked email also counts as opened and delivered. A rate is its count "
        "divided by the total, or 0 if the total is 0. The range consists of whole UTC hours: `from` is rounded down, "
        "`to` up, and the response contains both. Emails deleted by retention still count.",
        scope=READING,
        responses=[response(200, AnalyticsSerializer, "The totals and rates.", example=ANALYTICS)],
        problems=[VALIDATION_ERROR],
        parameters=[
            query("from", DATE_OR_DATETIME, "The first hour or day. Defaults to the creation of the workspace."),
            query(
                "to", DATE_OR_DATETIME, "The end of the range: a time, or a date, which is included. Defaults to now."
            ),
        ],
    )
)
daily_schema = extend_schema_view(
    get=keyed_operation(
        "getDailyVolume",
        "Get daily volume",
        "Counts emails by the UTC day on which they were created, oldest first. Today is included, and days without "
        "emails have zeros.",
        scope=READING,
        responses=[response(200, DaysSerializer, "One entry per day.", example=DAYS)],
        problems=[VALIDATION_ERROR],
        parameters=[
            query(
                "days",
                {"type": "integer", "minimum": 1, "maximum": MAX_DAYS, "default": DEFAULT_DAYS},
                "The number of days.",
            )
        ],
    )
)
