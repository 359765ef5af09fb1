"""`/v1/analytics`: totals and rates of a range, the volume of each day, causes of bounces, and latencies."""

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.bounces import read_causes
from analytics.latency import read_latency
from analytics.serializers import (
    AnalyticsSerializer,
    BounceCausesQuery,
    BounceCausesSerializer,
    DaysQuery,
    DaysSerializer,
    HoursQuery,
    LatencyQuery,
    LatencyReportSerializer,
)
from analytics.services import read_days, read_range
from core.api.schema import Operation, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.api.viewsets import WorkspaceView
from streams.errors import StreamNotFound

# Created once: instantiation copies every field, and rendering keeps no state in them.
RANGE, VOLUME, BOUNCES = AnalyticsSerializer(), DaysSerializer(), BounceCausesSerializer()
LATENCY = LatencyReportSerializer()

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
REPLY = {
    "emailId": "0Uf7m2kQ9VxHc3NwZrTb4M",
    "createdAt": "2026-11-21T06:20:00.412Z",
    "code": 550,
    "enhancedCode": "5.1.1",
    "message": "5.1.1 The email account that you tried to reach does not exist. - gsmtp",
}
REMEDY = {
    "advice": "Remove these addresses from your lists, and confirm new addresses with a link at sign-up.",
    "docsUrl": "https://mail.example.com/docs/guides/bounce-causes#invalid-addresses",
    "sample": REPLY,
}
CAUSES = {
    "event": "bounced",
    "from": "2026-10-22T07:00:00.000Z",
    "to": "2026-11-21T07:00:00.000Z",
    "countedFrom": "2026-10-22T07:00:00.000Z",
    "recipients": 12,
    "reasons": [{"reason": "unknown_user", "recipients": 12, "share": 1.0, **REMEDY}],
    "hosts": [{"name": "Google", "recipients": 9, "share": 0.75, "topReason": "unknown_user", **REMEDY}],
    "otherHosts": 3,
}
FIRST_ATTEMPT = {
    "count": 1200,
    "p50": 0.139,
    "p95": 0.226,
    "p99": 0.36,
    "within10Seconds": 1.0,
    "within60Seconds": 1.0,
    "within10Minutes": 1.0,
}
OUTCOME = {
    "count": 1195,
    "p50": 0.61,
    "p95": 3.9,
    "p99": 412.0,
    "within10Seconds": 0.97,
    "within60Seconds": 0.98,
    "within10Minutes": 0.995,
}
LATENCIES = {
    "from": "2026-10-22T07:00:00.000Z",
    "to": "2026-11-21T07:00:00.000Z",
    "firstAttempt": FIRST_ATTEMPT,
    "outcome": OUTCOME,
    "groups": [{"id": "google", "name": "Google", "firstAttempt": FIRST_ATTEMPT, "outcome": OUTCOME}],
}


@keyed_view()
class AnalyticsView(WorkspaceView):
    action = "analytics"

    @Operation(
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
    def get(self, request: Request) -> Response:
        volume = read_range(self.workspace, **self.valid_query(HoursQuery))
        return Response(RANGE.to_representation(volume))


@keyed_view()
class DailyView(WorkspaceView):
    action = "daily"

    @Operation(
        "getDailyVolume",
        "Get daily volume",
        "Counts emails by the UTC day on which they were created, oldest first. Today is included, and days without "
        "emails have zeros.",
        response(DaysSerializer, "One entry per day.", DAYS),
        problems=[StreamNotFound],
        parameters=[DaysQuery],
    )
    def get(self, request: Request) -> Response:
        days = read_days(self.workspace, **self.valid_query(DaysQuery))
        return Response(VOLUME.to_representation({"data": days}))


@keyed_view()
class BounceCausesView(WorkspaceView):
    action = "bounces"

    @Operation(
        "getBounceCauses",
        "Get causes of bounces",
        "Counts the recipients whose email bounced, failed or was deferred in a range, by reason and by receiving "
        "host, each with an example and advice. A recipient counts once, with the newest event. The newest 10,000 "
        "events of the range are counted, without those of test emails; events are deleted with their emails. Hosts "
        "are mail providers, recognized by the domain of the recipient or by the reply, and domains.",
        response(BounceCausesSerializer, "The causes.", CAUSES),
        problems=[StreamNotFound],
        parameters=[BounceCausesQuery],
    )
    def get(self, request: Request) -> Response:
        causes = read_causes(self.workspace, **self.valid_query(BounceCausesQuery))
        return Response(BOUNCES.to_representation(causes))


@keyed_view()
class LatencyView(WorkspaceView):
    action = "latency"

    @Operation(
        "getLatency",
        "Get latencies",
        "Returns how long recipients of live emails took from acceptance to the first delivery attempt, and to the "
        "outcome: accepted by the next mail server, bounced or failed. Waits that the sender asked for do not count: "
        "until `scheduledFor`, and while a batch or a stream is paused. Recipients count in the UTC hour in which "
        "their time ended, without those of the simulator; `from` is rounded down and `to` up to the hour. "
        "Percentiles are interpolated within buckets of at most 25 %. Emails deleted by retention still count.",
        response(LatencyReportSerializer, "The latencies.", LATENCIES),
        parameters=[LatencyQuery],
    )
    def get(self, request: Request) -> Response:
        report = read_latency(self.workspace, **self.valid_query(LatencyQuery))
        return Response(LATENCY.to_representation(report))
