"""Postmark's API: statistics by day, from the counters. Each email counts once, and days are in UTC."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from operator import attrgetter

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.outcomes import DayOutcomes, read_outcomes, read_stream_outcomes
from emails.models import Email
from interfaces.compat.errors import endpoint_absent, invalid_field
from interfaces.compat.postmark.filters import read_date
from interfaces.compat.postmark.names import read_id
from interfaces.compat.postmark.views import PostmarkViewSet
from streams.services import existing_stream

DEFAULT_DAYS = 30
MAX_DAYS = 366
Count = Callable[[DayOutcomes], int]


def _reached(event: str) -> Count:
    return lambda day: day.reached[event]


SENT: Count = attrgetter("total")
COMPLAINED: Count = attrgetter("complained")
BOUNCED, OPENED, CLICKED = map(_reached, ("bounced", "opened", "clicked"))
# https://postmarkapp.com/developer/api/stats-api
OVERVIEW: dict[str, Count] = {
    "Sent": SENT,
    "Bounced": BOUNCED,
    "SpamComplaints": COMPLAINED,
    "Opens": OPENED,
    "UniqueOpens": OPENED,
    "UniqueLinksClicked": CLICKED,
    "TotalClicks": CLICKED,
}


# Clients expect these, too.
NOT_COUNTED = dict.fromkeys(
    ("SMTPApiErrors", "Tracked", "WithLinkTracking", "WithOpenTracking", "TotalTrackedLinksSent", "WithClientRecorded",
     "WithPlatformRecorded", "WithReadTimeRecorded"), 0
)  # fmt: skip


class PostmarkStatsViewSet(PostmarkViewSet[Email]):
    queryset = Email.objects.none()

    def overview(self, request: Request) -> Response:
        days = self._days()
        body = {name: sum(map(count, days)) for name, count in OVERVIEW.items()}
        rates = {"BounceRate": body["Bounced"], "SpamComplaintsRate": body["SpamComplaints"]}
        percentages = {name: round(100 * count / max(body["Sent"], 1), 3) for name, count in rates.items()}
        return Response({**body, **percentages, **NOT_COUNTED})

    def sends(self, request: Request) -> Response:
        return self._counts(Sent=SENT)

    def bounces(self, request: Request) -> Response:
        return self._counts(HardBounce=BOUNCED)

    def spam(self, request: Request) -> Response:
        return self._counts(SpamComplaint=COMPLAINED)

    def opens(self, request: Request) -> Response:
        return self._counts(Opens=OPENED, Unique=OPENED)

    def clicks(self, request: Request) -> Response:
        return self._counts(Clicks=CLICKED, Unique=CLICKED)

    def _counts(self, **columns: Count) -> Response:
        """Return the columns of each day and their sums."""
        days = self._days()
        rows = [{"Date": day.day.isoformat(), **{name: count(day) for name, count in columns.items()}} for day in days]
        return Response({"Days": rows, **{name: sum(map(count, days)) for name, count in columns.items()}})

    def _days(self) -> list[DayOutcomes]:
        """Return the days of the query. Raises NotFound for a tag, InvalidFields, StreamNotFound."""
        query = {name.lower(): text for name, text in self.request.query_params.dict().items() if text}
        if "tag" in query:
            raise endpoint_absent("Statistics by tag are not available here.")
        last = _date(query, "todate") or datetime.now(UTC).date()
        first = _date(query, "fromdate") or last - min(timedelta(days=DEFAULT_DAYS - 1), last - date.min)
        if not 0 <= (last - first).days < MAX_DAYS:
            raise invalid_field("fromdate", f"The range must have 1 to {MAX_DAYS} days.")
        if "messagestream" in query:
            stream = existing_stream(self.workspace, read_id(query["messagestream"]))
            return read_stream_outcomes(self.workspace, stream.slug, first=first, last=last)
        return read_outcomes(self.workspace, first=first, last=last)


def _date(query: dict[str, str], name: str) -> date | None:
    return read_date(name, query[name]).date() if name in query else None
