"""`/v1/analytics`: totals and rates of a range, the volume of each day, and causes of bounces."""

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.bounces import read_causes
from analytics.schema import analytics_schema, causes_schema, daily_schema
from analytics.serializers import (
    AnalyticsSerializer,
    BounceCausesQuery,
    BounceCausesSerializer,
    DaysQuery,
    DaysSerializer,
    HoursQuery,
)
from analytics.services import read_days, read_range
from core.workspaces.api.viewsets import WorkspaceView

# Created once: instantiation copies every field, and rendering keeps no state in them.
ANALYTICS, DAYS, CAUSES = AnalyticsSerializer(), DaysSerializer(), BounceCausesSerializer()


@analytics_schema
class AnalyticsView(WorkspaceView):
    action = "analytics"

    def get(self, request: Request) -> Response:
        volume = read_range(self.workspace, **self.valid_query(HoursQuery))
        return Response(ANALYTICS.to_representation(volume))


@daily_schema
class DailyView(WorkspaceView):
    action = "daily"

    def get(self, request: Request) -> Response:
        days = read_days(self.workspace, **self.valid_query(DaysQuery))
        return Response(DAYS.to_representation({"data": days}))


@causes_schema
class BounceCausesView(WorkspaceView):
    action = "bounces"

    def get(self, request: Request) -> Response:
        causes = read_causes(self.workspace, **self.valid_query(BounceCausesQuery))
        return Response(CAUSES.to_representation(causes))
