from analytics.views import AnalyticsView, BounceCausesView, DailyView, LatencyView
from core.api.routing import fixed_path

urlpatterns = [
    fixed_path("analytics", AnalyticsView.as_view(), name="analytics"),
    fixed_path("analytics/daily", DailyView.as_view(), name="analytics-daily"),
    fixed_path("analytics/bounces", BounceCausesView.as_view(), name="analytics-bounces"),
    fixed_path("analytics/latency", LatencyView.as_view(), name="analytics-latency"),
]
