from core.api.routing import Router
from streams.views import StreamViewSet

router = Router()
router.register("streams", StreamViewSet, basename="stream")
urlpatterns = router.urls
