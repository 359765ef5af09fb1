from core.api.routing import Router
from suppressions.views import SuppressionViewSet

router = Router()
router.register("suppressions", SuppressionViewSet, basename="suppression")
urlpatterns = router.urls
