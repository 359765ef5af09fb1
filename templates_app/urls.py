from core.api.routing import Router
from templates_app.views import TemplateViewSet

router = Router()
router.register("templates", TemplateViewSet, basename="template")
urlpatterns = router.urls
