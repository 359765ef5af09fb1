from api.routing import fixed_path
from api.views import OpenApiView

urlpatterns = [fixed_path(r"openapi\.json", OpenApiView.as_view(), name="openapi")]
