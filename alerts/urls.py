from alerts.views import AlertViewSet
from core.api.routing import Router

router = Router()
router.register("alerts", AlertViewSet, basename="alert")
urlpatterns = router.urls
