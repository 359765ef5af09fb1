"""What stops the start: one sentence for each setting that is senseless or unsafe."""

import base64
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks

from config import env
from delivery.transports.provider_messages import BackendUnsuitable, check_backend
from delivery.transports.smtp.smtp_url import BadSmtpUrl, parse_smtp_url
from domains.record_checks.dmarc import dmarc_fault, dmarc_record
from domains.record_checks.spf import SpfInvalid, parse_mechanisms
from lib.email_addresses import InvalidAddress, parse_address
from lib.worker import failpoints

EMBEDDED_TRANSPORTS = frozenset({"inbox"})


def register_all() -> None:
    checks.register(check_settings, "postrider")


def check_settings(**_: Any) -> Sequence[checks.CheckMessage]:
    return [checks.Error(sentence, id="postrider.E001") for sentence in sentences()]


def refuse_unsafe_start() -> None:
    """End the process with the sentences of every bad setting; for gunicorn and Celery, which run no checks."""
    found = list(sentences())
    if found:
        raise SystemExit("\n".join(["Postrider does not start:", *found]))


def sentences() -> Iterator[str]:
    yield from env.problems
    yield from _missing()
    yield from _keys()
    yield from _addresses()
    yield from _sending_domains()
    yield from _inbound()
    yield from _delivery()
    yield from _faults()
    if not settings.EMBEDDED:
        yield from _embedded_in_production()


def _missing() -> Iterator[str]:
    hints = {
        "DATABASE_URL": "such as postgres://user:password@host:5432/postrider",
        "REDIS_URL": "such as redis://host:6379/0",
        "SECRET_KEY": "to 50 or more random characters",
        "APP_KEYS": "such as k1:$(openssl rand -base64 32)",
        "PUBLIC_URL": "to the address under which recipients reach this service, such as https://mail.example.com",
        "SYSTEM_FROM": "to the sender of invitations and password resets, such as Example Mail <no-reply@example.com>",
        "SPF_MECHANISMS": "to what passes the servers that mail leaves from, such as include:_spf.example.com",
    }
    optional = {"PUBLIC_URL", "SPF_MECHANISMS", "SYSTEM_FROM"} if settings.EMBEDDED else set()
    for name, hint in hints.items():
        if name not in optional and not env.is_set(name):
            yield f"Set {name} {hint}."


def _keys() -> Iterator[str]:
    if env.is_set("SECRET_KEY") and (len(settings.SECRET_KEY) < 40 or len(set(settings.SECRET_KEY)) < 10):
        yield "SECRET_KEY is too easy to guess; set it to 50 or more random characters."
    if settings.METRICS_TOKEN and len(settings.METRICS_TOKEN) < 20:
        yield "METRICS_TOKEN is too easy to guess; set it to 20 or more random characters."
    weak = [key_id for key_id, key in settings.APP_KEYS if len(set(key)) < 8]
    if weak:
        example = base64.b64encode(b"\0" * 3).decode()
        yield f"APP_KEYS: {', '.join(weak)} is not random ({example}…); make keys with openssl rand -base64 32."


def _addresses() -> Iterator[str]:
    try:
        parse_address(settings.SYSTEM_FROM or "unset@example.com")
    except InvalidAddress as error:
        yield f"SYSTEM_FROM must be such as Example Mail <no-reply@example.com>: {error}"
    url = urlsplit(settings.PUBLIC_URL)
    if url.scheme not in {"http", "https"} or not url.hostname or url.path or url.query or url.fragment:
        yield f"PUBLIC_URL must be https://host with no path, not {settings.PUBLIC_URL!r}."
    database = urlsplit(settings.DATABASE_URL).scheme
    if database and database not in {"postgres", "postgresql"}:
        yield f"DATABASE_URL must begin with postgres://; {database} is not supported."
    redis = urlsplit(settings.REDIS_URL).scheme
    if redis and redis not in {"redis", "rediss", "unix"}:
        yield f"REDIS_URL must begin with redis:// or rediss://, not {redis}://."


def _sending_domains() -> Iterator[str]:
    try:
        parse_mechanisms(settings.SPF_MECHANISMS)
    except SpfInvalid as error:
        yield f"SPF_MECHANISMS must be such as include:_spf.example.com ip4:192.0.2.0/24: {error}"
    if dmarc_fault([dmarc_record(settings.DMARC_RUA)]):
        yield "DMARC_RUA must be a comma list of addresses such as dmarc@example.com."


def _inbound() -> Iterator[str]:
    if bool(settings.INBOUND_TLS_CERT) != bool(settings.INBOUND_TLS_KEY):
        yield "INBOUND_TLS_CERT and INBOUND_TLS_KEY belong together: set both to the paths of PEM files, or neither."
    secret = settings.ANYMAIL_WEBHOOK_SECRET
    if secret and (":" not in secret or len(secret) < 20):
        yield "ANYMAIL_WEBHOOK_SECRET must be user:password with 20 or more characters in all, for the webhook's URL."


def _delivery() -> Iterator[str]:
    """Try what DELIVERY_TRANSPORT names; passwords and keys are in none of these sentences."""
    if settings.DELIVERY_TRANSPORT == "smtp":
        try:
            parse_smtp_url(settings.SMTP_URL)
        except BadSmtpUrl as error:
            yield f"SMTP_URL: {error}"
    if settings.DELIVERY_TRANSPORT == "anymail":
        try:
            check_backend(settings.ANYMAIL_BACKEND)
        except BackendUnsuitable as error:
            yield f"ANYMAIL_BACKEND: {error}"


def _faults() -> Iterator[str]:
    if failpoints.mistake:
        yield failpoints.mistake
    if env.is_set("FAULT_PLAN") and not settings.EMBEDDED and env.text("FAULT_PLAN_IN_PRODUCTION") != "on purpose":
        yield "FAULT_PLAN makes processes fail; unset it, or set FAULT_PLAN_IN_PRODUCTION to: on purpose."


def _embedded_in_production() -> Iterator[str]:
    if settings.DELIVERY_TRANSPORT in EMBEDDED_TRANSPORTS and not env.is_set("DELIVERY_TRANSPORT"):
        yield "DELIVERY_TRANSPORT must say how mail leaves this machine."
    if not settings.ALLOWED_HOSTS:
        yield "Set ALLOWED_HOSTS to the host names under which the service is reached, such as mail.example.com."
    if settings.PUBLIC_URL.startswith("http://") and env.is_set("PUBLIC_URL"):
        yield "PUBLIC_URL must be https in production: unsubscribe links and sign-in travel over it."
