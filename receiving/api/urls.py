from core.api.routing import Router, fixed_path
from receiving.api.routes import BlockViewSet, InboundView, RouteViewSet
from receiving.api.views import ReceivedViewSet

router = Router()
router.register("inbound/routes", RouteViewSet, basename="route")
router.register("inbound/blocks", BlockViewSet, basename="sender-block")
router.register("inbound/emails", ReceivedViewSet, basename="received-email")
urlpatterns = [*router.urls, fixed_path("inbound", InboundView.as_view(), name="inbound")]
