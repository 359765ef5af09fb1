"""Is the process alive, and can it do its work? Strangers learn no more than yes or no.

See docs/decisions/0046 for what turns it red: a database out of reach, and mail that nobody sends. Redis does
not: accepting and sending both do without it.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse, JsonResponse

from config.heartbeats import present_workers
from config.internal_access import is_insider
from emails.sending.delivery_health import is_sending, oldest_due_seconds
from emails.sending.sending_pause import is_held
from lib.redis_client import ask_redis


def nobody_sends() -> str | None:
    """Complain of mail that has been due for long, unless a worker is at it: a long queue alone is no fault."""
    seconds = oldest_due_seconds()
    if seconds <= settings.READY_MAX_DELAY or is_sending():
        return None
    if is_held():
        return f"A recipient has been due for {seconds:.0f} seconds, and sending is held (manage.py release)."
    return f"A recipient has been due for {seconds:.0f} seconds and no worker is sending."


def a_transport_is_paused() -> str | None:
    """Complain of a relay or a provider that refuses our login: three refusals in a row pause the transport."""
    return next((worker.trouble for worker in present_workers() if worker.trouble), None)


# What makes the service not ready: each returns a sentence for insiders, or None.
COMPLAINTS: tuple[Callable[[], str | None], ...] = (nobody_sends, a_transport_is_paused)


def healthz(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    try:
        complaints = [sentence for complain in COMPLAINTS if (sentence := complain())]
    except Error:
        complaints = ["The database does not answer."]
    body: dict[str, Any] = {"status": "not ready" if complaints else "ready"}
    if is_insider(request):
        body |= {"complaints": complaints, "broker": has_broker()}
    return JsonResponse(body, status=503 if complaints else 200)


def has_broker() -> bool:
    return bool(ask_redis(settings.REDIS_URL, lambda client: client.ping()))
