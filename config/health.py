"""Health checks `/healthz`, `/servingz` and `/readyz`. Details are shown only to internal access.

The service is not ready if the database is unavailable, sending or a transport is paused, or recipients or events are
overdue; in embedded mode also if no worker is running (docs/decisions/0046). A web server that is stopping is not ready
(0091). A late canary is a warning (0382).
Redis does not matter: emails are accepted and sent without it.

A load balancer asks `/servingz`, which fails only if this process cannot serve requests (0124).
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, JsonResponse
from django.middleware.common import CommonMiddleware

from config.heartbeats import live_workers
from config.internal_access import has_internal_access
from config.web.probe import describe_arrival
from config.web.stop import is_stopping
from console.system_mail.canary.status import find_warnings
from core.lib.datetimes import format_datetime
from core.lib.redis_client import ask_redis
from emails.sending.delivery_health import is_sending, oldest_due_seconds
from emails.sending.sending_checks import paused_since
from events import sequencer
from webhooks import publishing


def check_sending() -> str | None:
    """Return a complaint if sending is paused, or if a recipient is overdue and no worker is sending.

    A long queue alone is no error.
    """
    if since := paused_since():
        return f"Sending has been paused since {format_datetime(since)}: no email is sent until manage.py release."
    seconds = oldest_due_seconds()
    if seconds <= settings.READY_MAX_DELAY or is_sending():
        return None
    return f"A recipient has been due for {seconds:.0f} seconds and no worker is sending."


def check_events() -> str | None:
    """Return a complaint if events wait for their place in the feed, or for their webhook deliveries."""
    for subject, seconds in (("the event feed", sequencer.delay_seconds()), ("webhooks", publishing.delay_seconds())):
        if seconds > settings.READY_MAX_DELAY:
            return f"An event has been waiting for {subject} for {seconds:.0f} seconds. No worker is sequencing events."
    return None


def check_transport() -> str | None:
    """Return a complaint if a transport is paused, as after three refused logins in a row."""
    return next((worker.trouble for worker in live_workers() if worker.trouble), None)


def check_worker() -> str | None:
    """Return a complaint if no worker takes wake-ups, in embedded mode; in production email waits for the next one."""
    if not settings.EMBEDDED or live_workers() or not has_broker():
        return None
    return "No worker is running."


ANY_HOST_PATHS = frozenset({"/healthz", "/servingz", "/internal/tls"})
# Each returns a complaint that makes the service not ready, or None.
READINESS_CHECKS: tuple[Callable[[], str | None], ...] = (check_sending, check_events, check_transport, check_worker)


def canary_warnings() -> list[str]:
    """Return what the canary shows. It may be the fault of a mailbox elsewhere, so that the service stays ready."""
    return find_warnings(has_workers=bool(live_workers())) if settings.CANARY_MINUTES else []


class HostMiddleware(CommonMiddleware):
    """Django's check of the host name, except for probes: they send the address of the process as the host.

    Nor for requests to tracking hosts, which TrackingHostMiddleware has checked.

    The other pages need the check, also `/readyz` and `/metrics`: a page of a foreign site whose name resolves to this
    machine could otherwise read their details (docs/decisions/0101).
    """

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        is_checked = request.path in ANY_HOST_PATHS or hasattr(request, "tracking_host")
        return None if is_checked else super().process_request(request)


def healthz(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"} | describe_arrival(request))


def servingz(request: HttpRequest) -> HttpResponse:
    is_serving = not is_stopping() and has_database()
    body = {"status": "serving" if is_serving else "not serving"}
    return JsonResponse(body, status=200 if is_serving else 503)


def readyz(request: HttpRequest) -> HttpResponse:
    warnings: list[str] = []
    try:
        complaints = [complaint for check in READINESS_CHECKS if (complaint := check())]
        warnings = canary_warnings()
    except Error:
        complaints = ["The database is not responding."]
    if is_stopping():
        complaints.append("This web server is stopping.")
    body: dict[str, Any] = {"status": "not ready" if complaints else "ready"}
    if has_internal_access(request):
        body |= {"complaints": complaints, "broker": has_broker()} | ({"warnings": warnings} if warnings else {})
    return JsonResponse(body, status=503 if complaints else 200)


def has_database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return False
    return True


def has_broker() -> bool:
    return bool(ask_redis(settings.REDIS_URL, lambda client: client.ping()))
