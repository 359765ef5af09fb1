from api.routing import Router, door
from emails.api.views import EmailViewSet, QueueStatsView

router = Router()
router.register("emails", EmailViewSet, basename="email")
urlpatterns = [*router.urls, door("queue/stats", QueueStatsView.as_view(), name="queue-stats")]
