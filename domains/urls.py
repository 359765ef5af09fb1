from core.api.routing import Router
from domains.views import DomainViewSet

router = Router()
router.register("domains", DomainViewSet, basename="domain")
urlpatterns = router.urls
