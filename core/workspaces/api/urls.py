from core.api.routing import fixed_path
from core.workspaces.api.views import MeView

urlpatterns = [fixed_path("me", MeView.as_view(), name="me")]
