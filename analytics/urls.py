from analytics.views import AnalyticsView, DailyView
from api.routing import fixed_path

urlpatterns = [
    fixed_path("analytics", AnalyticsView.as_view(), name="analytics"),
    fixed_path("analytics/daily", DailyView.as_view(), name="analytics-daily"),
]
