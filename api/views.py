"""`/v1/openapi.json`: the API's description, for machines."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema_view
from rest_framework.request import Request
from rest_framework.views import APIView

from api.openapi import document
from api.schema import answer, operation


@extend_schema_view(
    get=operation(
        "getOpenApi",
        "Get the OpenAPI document",
        "Returns this description of the API, OpenAPI 3.1. No key is needed.",
        answers=[
            answer(200, {"type": "object"}, "The document.", example={"openapi": "3.1.1", "info": {}, "paths": {}})
        ],
    )
)
class OpenApiView(APIView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(document(), content_type="application/json")
