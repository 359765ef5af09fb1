from api.routing import door
from workspaces.api.views import MeView

urlpatterns = [door("me", MeView.as_view(), name="me")]
