"""SendGrid's API: statistics by day, from the counters. Each email counts once, and days are in UTC."""

from datetime import UTC, date, datetime

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.outcomes import DayOutcomes, read_outcomes
from emails.models import Email
from interfaces.compat.errors import endpoint_absent, invalid_field
from interfaces.compat.sendgrid.resources import Resource
from interfaces.compat.sendgrid.views import SendGridViewSet

MAX_DAYS = 366
# Clients expect these, too.
NOT_COUNTED = dict.fromkeys(
    ("blocks", "bounce_drops", "deferred", "invalid_emails", "spam_report_drops", "unsubscribe_drops", "unsubscribes"),
    0,
)


class SendGridStatsViewSet(SendGridViewSet[Email]):
    queryset = Email.objects.none()

    def list(self, request: Request) -> Response:
        first, last = read_days(request)
        return Response([day_resource(day) for day in read_outcomes(self.workspace, first=first, last=last)])


def read_days(request: Request) -> tuple[date, date]:
    """Return the first and the last day of a query. Raises InvalidFields, and NotFound for other periods."""
    if request.query_params.get("aggregated_by", "day") != "day":
        raise endpoint_absent("Statistics are available by day only.")
    first = _date(request, "start_date")
    last = _date(request, "end_date") if "end_date" in request.query_params else datetime.now(UTC).date()
    if not 0 <= (last - first).days < MAX_DAYS:
        raise invalid_field("start_date", f"The range must have 1 to {MAX_DAYS} days.")
    return first, last


def day_resource(day: DayOutcomes) -> Resource:
    reached = day.reached
    # https://www.twilio.com/docs/sendgrid/api-reference/stats
    metrics = {
        "requests": day.total,
        "processed": day.total,
        "delivered": reached["delivered"],
        "bounces": reached["bounced"],
        "opens": reached["opened"],
        "unique_opens": reached["opened"],
        "clicks": reached["clicked"],
        "unique_clicks": reached["clicked"],
        "spam_reports": day.complained,
        **NOT_COUNTED,
    }
    return {"date": day.day.isoformat(), "stats": [{"metrics": metrics}]}


def _date(request: Request, name: str) -> date:
    try:
        return date.fromisoformat(request.query_params.get(name, ""))
    except ValueError as error:
        raise invalid_field(name, "This must be a date, such as 2026-11-21.") from error
