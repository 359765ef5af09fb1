"""DATABASE_URL: its parameters, and whether its connections are verified (docs/decisions/0175).

The names and values of the parameters are those of libpq:
https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS
"""

import os
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import dj_database_url

SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
FILES = ("sslrootcert", "sslcert", "sslkey")
PARAMETERS = ("sslmode", *FILES, "application_name", "channel_binding", "target_session_attrs")
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


def parse_database_url(url: str, *, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return Django's settings of a database. options: of libpq, added to the parameters of the URL."""
    # config.checks reports any other value; it must not prevent the settings from loading.
    known = url if url.startswith("postgres") else "postgres://unset/unset"
    database = dict(dj_database_url.parse(known, conn_max_age=None, conn_health_checks=True))
    return {**database, "OPTIONS": {**_parameters(known), **options}}


def database_url_errors(url: str) -> Iterator[str]:
    """Yield a message for each invalid parameter. Values other than those of TLS are never part of it."""
    parameters = _parameters(url)
    for name, value in parameters.items():
        if name not in PARAMETERS:
            yield f"DATABASE_URL: the parameter {name} is not supported. Use only {', '.join(PARAMETERS)}."
        elif name == "sslmode" and value not in SSL_MODES:
            yield f"DATABASE_URL: sslmode must be one of {', '.join(SSL_MODES)}, not {value!r}."
        elif name in FILES and not os.access(value, os.R_OK):
            yield f"DATABASE_URL: {name}={value} cannot be read. Use the path of a PEM file, such as {AUTHORITIES}."
    mode = parameters.get("sslmode", "")
    # libpq would look for the file in the home of the account.
    if mode.startswith("verify-") and not (parameters.get("sslrootcert") or os.environ.get("PGSSLROOTCERT")):
        yield (
            f"DATABASE_URL: sslmode={mode} requires sslrootcert, the path of a file with the certificates of the "
            f"authorities, such as sslrootcert={AUTHORITIES}."
        )


def unverified_host(database: Mapping[str, Any]) -> str:
    """Return the host of Django's settings if it is remote and connections to it are not verified, "" otherwise."""
    mode = database["OPTIONS"].get("sslmode") or os.environ.get("PGSSLMODE", "")
    host = str(database["HOST"])
    return host if mode != "verify-full" and any(map(_is_remote, host.split(","))) else ""


def _parameters(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))


def _is_remote(host: str) -> bool:
    """Return whether a host is another machine. Names without a dot are those of a network of containers."""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return "." in host and not host.startswith("/")
