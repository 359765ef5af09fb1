from core.api.routing import Router, fixed_path
from emails.api.views import EmailViewSet, QueueStatsView

router = Router()
router.register("emails", EmailViewSet, basename="email")
urlpatterns = [*router.urls, fixed_path("queue/stats", QueueStatsView.as_view(), name="queue-stats")]
