from api.routing import door
from api.views import OpenApiView

urlpatterns = [door(r"openapi\.json", OpenApiView.as_view(), name="openapi")]
