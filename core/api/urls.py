"""The OpenAPI document at /v1/openapi.json."""

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.views import APIView

from core.api.openapi import openapi_document
from core.api.routing import fixed_path
from core.api.schema import Operation, describe_view, response


@describe_view(
    get=Operation(
        "getOpenApi",
        "Get the OpenAPI document",
        "Returns this description of the API in OpenAPI 3.1. No API key is required.",
        response({"type": "object"}, "The document.", {"openapi": "3.1.1", "info": {}, "paths": {}}),
    )
)
class OpenApiView(APIView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(openapi_document(), content_type="application/json")


urlpatterns = [fixed_path(r"openapi\.json", OpenApiView.as_view(), name="openapi")]
