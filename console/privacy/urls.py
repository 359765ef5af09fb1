from console.privacy.views import ErasureViewSet
from core.api.routing import Router

router = Router()
router.register("erasures", ErasureViewSet, basename="erasure")
urlpatterns = router.urls
