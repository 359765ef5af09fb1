"""Is the process alive, and can it do its work? Strangers learn no more than yes or no."""

from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, JsonResponse


def healthz(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 when the database answers; accepting and sending mail both do without Redis."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return JsonResponse({"status": "not ready"}, status=503)
    return JsonResponse({"status": "ready"})
