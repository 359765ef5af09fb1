"""The OpenAPI document at `/v1/openapi.json`."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema_view
from rest_framework.request import Request
from rest_framework.views import APIView

from api.openapi import openapi_document
from api.schema import operation, response


@extend_schema_view(
    get=operation(
        "getOpenApi",
        "Get the OpenAPI document",
        "Returns this description of the API in OpenAPI 3.1. No API key is required.",
        responses=[
            response(200, {"type": "object"}, "The document.", example={"openapi": "3.1.1", "info": {}, "paths": {}})
        ],
    )
)
class OpenApiView(APIView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(openapi_document(), content_type="application/json")
