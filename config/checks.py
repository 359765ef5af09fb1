"""System checks: Postrider refuses to start with a missing or unsafe setting and explains how to fix it."""

import base64
import difflib
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks

from config import env
from config.postgres.database_url import database_url_errors
from core.delivery.transports.provider_messages import BackendUnsuitable, check_backend
from core.delivery.transports.smtp.smtp_url import InvalidSmtpUrl, parse_smtp_url
from core.delivery.transports.source_addresses import usable_addresses
from core.lib.email_addresses import InvalidAddress, parse_address
from core.lib.mail.receiving_memory import memory_for
from core.lib.mail.smtp_limits import SessionLimits
from core.lib.network.tls_certificate import certificate_error
from core.lib.redis_client import SENTINEL, SentinelUrl
from core.lib.worker import failpoints
from core.workspaces.access_rules import InvalidRolesFile, read_rules
from core.workspaces.recipients.rules import Otherwise, RecipientRules
from domains.names import InvalidDomainName, to_a_label
from domains.record_checks.dmarc import build_dmarc_record, find_dmarc_error
from domains.record_checks.spf_syntax import InvalidSpf, parse_mechanisms

MAX_SYSTEM_NAME = 60
HTTPS_URL = re.compile(r"https://[a-z0-9.-]+(:[0-9]{1,5})?/[^\s\"'<>]*", re.IGNORECASE | re.ASCII)
# A name such as PORT or MODE is nearly that of variables of many other programs.
SHORTEST_NAME = 8
LEAST_SIMILARITY = 0.88
LOOPBACKS = frozenset({"localhost", "127.0.0.1", "::1"})

log = logging.getLogger("postrider.settings")


def check_settings(**_: Any) -> Sequence[checks.CheckMessage]:
    errors = [checks.Error(message, id="postrider.E001") for message in setting_errors()]
    return [*errors, *(checks.Warning(message, id="postrider.W003") for message in setting_warnings())]


def check_recipients(**_: Any) -> Sequence[checks.CheckMessage]:
    """Return a warning that every command and process shows when it starts."""
    return [checks.Warning(message, id="postrider.W001") for message in recipient_warnings()]


def recipient_warnings() -> Iterator[str]:
    """Yield who gets emails, if not everybody."""
    recipients = settings.RECIPIENTS
    if rules := recipients.rules:
        yield f"RECIPIENTS names a file with rules: {_describe_rules(rules)}."
    elif recipients.redirect_to:
        yield f"RECIPIENTS={recipients}: no recipient gets email; all emails go to {recipients.redirect_to}."
    elif recipients.diversion:
        yield f"RECIPIENTS={recipients}: no recipient gets email; the built-in inbox captures all emails."


def _describe_rules(rules: RecipientRules) -> str:
    if rules.allow is None:
        return "its caps limit how many emails a recipient gets"
    effects = {
        Otherwise.REFUSE: "are refused",
        Otherwise.CAPTURE: "are captured by the built-in inbox",
        Otherwise.REDIRECT: f"go to {rules.redirect_to}",
    }
    return f"only the recipients that it allows get email; emails to others {effects[rules.otherwise]}"


def refuse_unsafe_start() -> None:
    """Exit with the messages of all invalid settings; for gunicorn and Celery, which run no system checks.

    Misspelled names are logged.
    """
    for message in misspelled_settings():
        log.warning(message)
    refuse_start(setting_errors())


def refuse_start(messages: Iterable[str]) -> None:
    """Exit with the messages, if there are any."""
    if texts := list(messages):
        raise SystemExit("\n".join(["Postrider cannot start:", *texts]))


def setting_errors() -> Iterator[str]:
    """Yield one message per invalid setting. Secrets never appear in a message."""
    yield from env.problems
    yield from _missing_settings()
    yield from _keys()
    yield from _addresses()
    yield from _sending_domains()
    yield from _inbound()
    yield from _system_email()
    yield from _canary()
    yield from _tls_reports()
    yield from _delivery()
    yield from _identity_provider()
    yield from _failpoints()
    if not settings.EMBEDDED:
        yield from _production_settings()


def setting_warnings() -> Iterator[str]:
    """Yield one message per setting that has no effect, or that a server of this machine cannot use."""
    yield from misspelled_settings()
    for server in ("INBOUND", "SUBMISSION"):
        certificate, key = (getattr(settings, f"{server}_TLS_{name}") for name in ("CERT", "KEY"))
        if certificate and key and (error := certificate_error(certificate, key)):
            yield f"{server}_TLS_CERT and {server}_TLS_KEY cannot be used on this machine: {error}"


def misspelled_settings() -> Iterator[str]:
    """Yield a message for each variable of the environment that is no setting and whose name is nearly that of one.

    An environment has variables of other programs, so a name without resemblance says nothing.
    """
    for name in sorted(os.environ):
        plain = name.removesuffix(env.FILE_SUFFIX)
        if plain in env.declared or env.is_secret(plain) or len(plain) < SHORTEST_NAME:
            continue
        if similar := difflib.get_close_matches(plain, env.declared, n=1, cutoff=LEAST_SIMILARITY):
            yield f"{name} is not a setting, and has no effect. Did you mean {similar[0]}?"


def _missing_settings() -> Iterator[str]:
    hints = {
        "DATABASE_URL": "to a URL such as postgres://user:password@host:5432/postrider",
        "REDIS_URL": "to a URL such as redis://host:6379/0",
        "SECRET_KEY": "to 50 or more random characters",
        "APP_KEYS": "to a key such as k1:$(openssl rand -base64 32)",
        "PUBLIC_URL": "to the URL at which recipients reach this service, such as https://mail.example.com",
        "SYSTEM_FROM": "to the sender of invitations and password resets, such as Example Mail <no-reply@example.com>",
        "SPF_MECHANISMS": "to the SPF mechanisms of your mail servers, such as include:_spf.example.com",
    }
    optional = {"PUBLIC_URL", "SPF_MECHANISMS", "SYSTEM_FROM"} if settings.EMBEDDED else set()
    optional |= {"SPF_MECHANISMS"} if settings.TRANSPORTS.spf else set()
    for name, hint in hints.items():
        if name not in optional and not env.is_set(name):
            yield f"{name} is missing. Set it {hint}."


def _keys() -> Iterator[str]:
    if env.text("SECRET_KEY") and (len(settings.SECRET_KEY) < 40 or len(set(settings.SECRET_KEY)) < 10):
        yield "SECRET_KEY is too easy to guess. Set it to 50 or more random characters."
    if settings.METRICS_TOKEN and len(settings.METRICS_TOKEN) < 20:
        yield "METRICS_TOKEN is too easy to guess. Set it to 20 or more random characters."
    weak = [key_id for key_id, key in settings.APP_KEYS if len(set(key)) < 8]
    if weak:
        example = base64.b64encode(b"\0" * 3).decode()
        names = ", ".join(weak)
        yield f"APP_KEYS: the key {names} is not random ({example}…). Generate one with openssl rand -base64 32."


def _system_email() -> Iterator[str]:
    if len(settings.SYSTEM_NAME) > MAX_SYSTEM_NAME or not settings.SYSTEM_NAME.isprintable():
        yield f"SYSTEM_NAME must be one line of at most {MAX_SYSTEM_NAME} characters."
    logo = settings.SYSTEM_LOGO_URL
    if logo and not HTTPS_URL.fullmatch(logo):
        yield f"SYSTEM_LOGO_URL must be a URL such as https://example.com/logo.png, not {logo!r}."


def _canary() -> Iterator[str]:
    """Check the settings of the canary; the URL is a secret."""
    if not settings.CANARY_MINUTES:
        return
    try:
        is_valid = parse_address(settings.CANARY_ADDRESS).spec == settings.CANARY_ADDRESS
    except InvalidAddress:
        is_valid = False
    if not is_valid or not settings.CANARY_ADDRESS.isascii():
        yield "CANARY_ADDRESS must be the address that CANARY_MINUTES sends to, such as canary@in.example.com."
    url = urlsplit(settings.CANARY_PING_URL)
    if settings.CANARY_PING_URL and (url.scheme not in {"http", "https"} or not url.hostname):
        yield "CANARY_PING_URL must be a URL such as https://hc-ping.com/your-check."


def _tls_reports() -> Iterator[str]:
    if env.is_set("TLSRPT_DOMAIN"):
        try:
            to_a_label(settings.TLSRPT_DOMAIN)
        except InvalidDomainName as error:
            yield f"TLSRPT_DOMAIN must be a sending domain such as example.com: {error}"


def _addresses() -> Iterator[str]:
    try:
        parse_address(settings.SYSTEM_FROM or "unset@example.com")
    except InvalidAddress as error:
        yield f"SYSTEM_FROM must be an address such as Example Mail <no-reply@example.com>: {error}"
    url = urlsplit(settings.PUBLIC_URL)
    if url.scheme not in {"http", "https"} or not url.hostname or url.path or url.query or url.fragment:
        yield f"PUBLIC_URL must be https://host without a path, not {settings.PUBLIC_URL!r}."
    if env.is_set("TRACKING_HOST"):
        try:
            to_a_label(settings.TRACKING_HOST)
        except InvalidDomainName as error:
            yield f"TRACKING_HOST must be a host name such as links.example.com: {error}"
    database = urlsplit(settings.DATABASE_URL).scheme
    if database and database not in {"postgres", "postgresql"}:
        yield f"DATABASE_URL must begin with postgres://; {database} is not supported."
    yield from database_url_errors(settings.DATABASE_URL)
    redis = urlsplit(settings.REDIS_URL).scheme
    if redis and redis not in {"redis", "rediss", "unix", SENTINEL}:
        yield f"REDIS_URL must begin with redis://, rediss:// or {SENTINEL}://, not {redis}://."
    if redis == SENTINEL:
        try:
            SentinelUrl.parse(settings.REDIS_URL)
        except ValueError as error:
            yield f"REDIS_URL: {error}"


def _sending_domains() -> Iterator[str]:
    try:
        parse_mechanisms(settings.SPF_MECHANISMS)
    except InvalidSpf as error:
        yield f"SPF_MECHANISMS must be a list such as include:_spf.example.com ip4:192.0.2.0/24: {error}"
    if find_dmarc_error([build_dmarc_record(settings.DMARC_RUA)]):
        yield "DMARC_RUA must be a comma-separated list of addresses such as dmarc@example.com."


def _inbound() -> Iterator[str]:
    if bool(settings.INBOUND_TLS_CERT) != bool(settings.INBOUND_TLS_KEY):
        yield "INBOUND_TLS_CERT and INBOUND_TLS_KEY require each other. Set both to paths of PEM files, or neither."
    if bool(settings.SUBMISSION_TLS_CERT) != bool(settings.SUBMISSION_TLS_KEY):
        yield "SUBMISSION_TLS_CERT and SUBMISSION_TLS_KEY require each other. Set both to PEM files, or neither."
    if not settings.SUBMISSION_PORTS and not (settings.SUBMISSION_TLS_PORTS and settings.SUBMISSION_TLS_CERT):
        yield "SUBMISSION_PORTS is none: set SUBMISSION_TLS_PORTS and SUBMISSION_TLS_CERT, or a port such as 587."
    for name, host in [
        ("RECEIVING_DOMAIN", settings.RECEIVING_DOMAIN),
        *(("RECEIVING_MX", mx) for mx in settings.RECEIVING_MX),
    ]:
        try:
            to_a_label(host or "unset.example")
        except InvalidDomainName as error:
            yield f"{name} must be a host name such as in.example.com: {error}"
    needed = memory_for(max(settings.RECEIVING_MAX_BYTES, SessionLimits.message_bytes))
    if needed > settings.RECEIVING_MEMORY_BYTES:
        yield (
            f"RECEIVING_MEMORY_BYTES must be at least {needed}: a workspace may use a part of it, where a message of "
            f"RECEIVING_MAX_BYTES={settings.RECEIVING_MAX_BYTES}, or a report of 1 MiB, would never find room. Raise "
            "it, or lower RECEIVING_MAX_BYTES."
        )
    if settings.RSPAMD_URL and urlsplit(settings.RSPAMD_URL).scheme not in {"http", "https"}:
        yield "RSPAMD_URL must be the URL of rspamd's controller or normal worker, such as http://127.0.0.1:11333."
    secret = settings.ANYMAIL_WEBHOOK_SECRET
    if secret and (":" not in secret or len(secret) < 20):
        yield "ANYMAIL_WEBHOOK_SECRET must be user:password, 20 or more characters in total, for the webhook URL."


def _delivery() -> Iterator[str]:
    """Check the settings of the transport; passwords and keys are not part of the messages."""
    if settings.DELIVERY_TRANSPORT == "smtp":
        try:
            parse_smtp_url(settings.SMTP_URL)
        except InvalidSmtpUrl as error:
            yield f"SMTP_URL: {error}"
    if settings.DELIVERY_TRANSPORT == "anymail":
        try:
            check_backend(settings.ANYMAIL_BACKEND)
        except BackendUnsuitable as error:
            yield f"ANYMAIL_BACKEND: {error}"
    yield from _named_transports()


def _named_transports() -> Iterator[str]:
    """Check what the reader of the file cannot: the providers' backends, and relays that lead back here."""
    if not settings.TRANSPORTS.is_named:
        return
    if env.is_set("DELIVERY_TRANSPORT"):
        yield "TRANSPORTS_FILE replaces DELIVERY_TRANSPORT. Unset one of them."
    own_ports = {*settings.SUBMISSION_PORTS, *settings.SUBMISSION_TLS_PORTS, settings.INBOUND_PORT}
    for name, spec in settings.TRANSPORTS.transports.items():
        place = f"TRANSPORTS_FILE: transports, {name}"
        try:
            parse_mechanisms(spec.spf)
            if spec.kind == "anymail":
                check_backend(spec.backend, options=spec.backend_options)
        except InvalidSpf as error:
            yield f"{place}: spf must be a list such as include:_spf.example.com: {error}"
        except (BackendUnsuitable, TypeError) as error:
            yield f"{place}: {error}"
        if spec.leave_when_listed and not settings.BLOCKLISTS:
            yield f"{place}: leaveWhenListed needs block lists. Set BLOCKLISTS, or remove it."
        if spec.relay and spec.relay.host in LOOPBACKS and spec.relay.port in own_ports:
            yield f"{place}: the relay is this service itself, which would send its mail in a circle."


def source_errors() -> Iterator[str]:
    """Yield a message for each direct transport that a worker of this machine cannot use."""
    for name, spec in settings.TRANSPORTS.transports.items():
        if spec.source_addresses and not usable_addresses(spec.source_addresses):
            yield (
                f"TRANSPORTS_FILE: transports, {name}: this machine has none of the sourceAddresses "
                f"{', '.join(map(str, spec.source_addresses))}. Configure one of them, or remove the setting."
            )


def refuse_unusable_sources() -> None:
    """Exit with the messages of source_errors; for workers, since web needs no such address."""
    refuse_start(source_errors())


def _identity_provider() -> Iterator[str]:
    if not settings.OIDC_ISSUER:
        if settings.PASSWORDS != "on":
            yield "PASSWORDS leaves people no way to sign in. Set OIDC_ISSUER to an identity provider, or PASSWORDS=on."
        return
    for name in ("OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"):
        if not env.is_set(name):
            yield f"{name} is missing. Set it to that of the client which is registered at the identity provider."
    if "openid" not in settings.OIDC_SCOPES.split():
        yield "OIDC_SCOPES must contain openid, such as: openid email profile groups."
    issuer = urlsplit(settings.OIDC_ISSUER)
    schemes = {"https", "http"} if settings.OIDC_ALLOW_PRIVATE_NETWORKS else {"https"}
    if issuer.scheme not in schemes or not issuer.hostname or issuer.query or issuer.fragment:
        yield f"OIDC_ISSUER must be the https:// URL of an identity provider, not {settings.OIDC_ISSUER!r}."
    try:
        read_rules()
    except InvalidRolesFile as error:
        yield f"OIDC_ROLES_FILE: {error}"


def _failpoints() -> Iterator[str]:
    if failpoints.plan_error:
        yield failpoints.plan_error
    if env.is_set("FAULT_PLAN") and not settings.EMBEDDED and env.text("FAULT_PLAN_IN_PRODUCTION") != "on purpose":
        yield "FAULT_PLAN makes processes fail. Unset it, or set FAULT_PLAN_IN_PRODUCTION to: on purpose."


def _production_settings() -> Iterator[str]:
    if not settings.ALLOWED_HOSTS:
        yield "ALLOWED_HOSTS is missing. Set it to the host names of this service, such as mail.example.com."
    if "*" in settings.ALLOWED_HOSTS:
        yield "ALLOWED_HOSTS must not contain *. Set it to the host names of this service, such as mail.example.com."
    if settings.PUBLIC_URL.startswith("http://") and env.is_set("PUBLIC_URL"):
        yield "PUBLIC_URL must begin with https:// in production: unsubscribe links and sign-ins use it."
