"""`/v1/analytics` in the OpenAPI document."""

from analytics.serializers import AnalyticsSerializer, DaysQuery, DaysSerializer, HoursQuery
from api.schema import Operation, response
from streams.errors import StreamNotFound
from workspaces.api.schema import keyed_view

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

analytics_schema = keyed_view(
    get=Operation(
        "getAnalytics",
        "Get totals and rates",
        "Counts the emails created in a range, except cancelled and still scheduled ones, and the emails among them "
        "that had each event at least once. A clicked email also counts as opened and delivered. A rate is its count "
        "divided by the total, or 0 if the total is 0. The range consists of whole UTC hours: `from` is rounded down, "
        "`to` up, and the response contains both; with `stream`, of whole UTC days. Emails deleted by retention still "
        "count.",
        response(AnalyticsSerializer, "The totals and rates.", ANALYTICS),
        problems=[StreamNotFound],
        parameters=[HoursQuery],
    )
)
daily_schema = keyed_view(
    get=Operation(
        "getDailyVolume",
        "Get daily volume",
        "Counts emails by the UTC day on which they were created, oldest first. Today is included, and days without "
        "emails have zeros.",
        response(DaysSerializer, "One entry per day.", DAYS),
        problems=[StreamNotFound],
        parameters=[DaysQuery],
    )
)
