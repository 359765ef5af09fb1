from api.routing import Router
from emails.views import EmailViewSet

router = Router()
router.register("emails", EmailViewSet, basename="email")
urlpatterns = router.urls
