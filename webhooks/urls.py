from core.api.routing import Router
from webhooks.views import DeliveryViewSet, WebhookViewSet

router = Router()
router.register(r"webhooks/(?P<webhook_id>[^/.]+)/deliveries", DeliveryViewSet, basename="delivery")
router.register("webhooks", WebhookViewSet, basename="webhook")
urlpatterns = router.urls
