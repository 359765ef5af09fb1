from console.privacy.views import ErasureViewSet, SubjectExportViewSet
from core.api.routing import Router

router = Router()
router.register("erasures", ErasureViewSet, basename="erasure")
router.register("subject-exports", SubjectExportViewSet, basename="subject-export")
urlpatterns = router.urls
