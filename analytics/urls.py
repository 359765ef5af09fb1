from analytics.views import AnalyticsView, DailyView
from api.routing import door

urlpatterns = [
    door("analytics", AnalyticsView.as_view(), name="analytics"),
    door("analytics/daily", DailyView.as_view(), name="analytics-daily"),
]
