from api.docs import OpenApiView
from api.routing import fixed_path

urlpatterns = [fixed_path(r"openapi\.json", OpenApiView.as_view(), name="openapi")]
