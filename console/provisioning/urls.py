from console.provisioning.views import (
    AuditViewSet,
    ConfigurationViewSet,
    InvitationViewSet,
    ManagedKeyViewSet,
    ManagedMemberViewSet,
    ManagedWorkspaceViewSet,
    ReceiverViewSet,
    TransportViewSet,
)
from core.api.routing import Router

WITHIN = r"workspaces/(?P<workspace_id>[^/.]+)"

router = Router()
router.register(f"{WITHIN}/api-keys", ManagedKeyViewSet, basename="managed-key")
router.register(f"{WITHIN}/members", ManagedMemberViewSet, basename="managed-member")
router.register(f"{WITHIN}/invitations", InvitationViewSet, basename="invitation")
router.register(f"{WITHIN}/audit", AuditViewSet, basename="audit")
router.register("configuration", ConfigurationViewSet, basename="configuration")
router.register("receivers", ReceiverViewSet, basename="receiver")
router.register("transports", TransportViewSet, basename="transport")
router.register("workspaces", ManagedWorkspaceViewSet, basename="managed-workspace")
urlpatterns = router.urls
