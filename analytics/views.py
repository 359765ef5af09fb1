"""`/v1/analytics`: totals and rates of a range, and the volume of each day."""

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.schema import analytics_schema, daily_schema
from analytics.serializers import AnalyticsSerializer, DaysQuery, DaysSerializer, HoursQuery
from analytics.services import read_days, read_span
from workspaces.api.viewsets import WorkspaceView

# Made once, for making one copies all its fields; nothing of an answer stays in them.
SPAN, DAYS = AnalyticsSerializer(), DaysSerializer()


@analytics_schema
class AnalyticsView(WorkspaceView):
    action = "analytics"

    def get(self, request: Request) -> Response:
        span = read_span(self.workspace, **self.valid_query(HoursQuery))
        return Response(SPAN.to_representation(span))


@daily_schema
class DailyView(WorkspaceView):
    action = "daily"

    def get(self, request: Request) -> Response:
        days = read_days(self.workspace, **self.valid_query(DaysQuery))
        return Response(DAYS.to_representation({"data": days}))
