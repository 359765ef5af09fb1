"""DATABASE_URL: its hosts (docs/decisions/0250) and parameters, and whether connections are verified (0175).

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
DEFAULT_PORT = 5432
# The values with which libpq connects to the primary among several servers.
PRIMARY = ("read-write", "primary")


def parse_database_url(url: str, *, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return Django's settings of a database. options: options of libpq, added to the parameters of the URL."""
    # config.checks reports any other value; it must not prevent the settings from loading.
    known = url if url.startswith("postgres") else "postgres://unset/unset"
    hosts = [urlsplit(f"//{host}") for host in _hosts(known) if _is_valid(host)]
    # dj-database-url reads one host only.
    first = _with_host(known, hosts[0].netloc if hosts else "")
    database = dict(dj_database_url.parse(first, conn_max_age=None, conn_health_checks=True))
    if len(hosts) > 1:
        database["HOST"] = ",".join(host.hostname or "" for host in hosts)
        database["PORT"] = ",".join(str(host.port or DEFAULT_PORT) for host in hosts)
    # Cursors of the server outlive a transaction, which PgBouncer does not allow (docs/decisions/0251).
    database["DISABLE_SERVER_SIDE_CURSORS"] = True
    return {**database, "OPTIONS": {**_parameters(known), **options}}


def database_url_errors(url: str) -> Iterator[str]:
    """Yield a message for each invalid parameter. Values other than those of TLS are never part of it."""
    parameters, hosts = _parameters(url), _hosts(url)
    if not all(map(_is_valid, hosts)):
        yield "DATABASE_URL: the hosts must be a host with a port, or a list such as db1:5432,db2:5432."
    if len(hosts) > 1 and parameters.get("target_session_attrs") not in PRIMARY:
        yield (
            "DATABASE_URL names several hosts, of which only the primary accepts email. Add "
            "target_session_attrs=read-write to its parameters."
        )
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


def _hosts(url: str) -> list[str]:
    """Return the hosts of a URL, each with its port if given."""
    return urlsplit(url).netloc.rpartition("@")[2].split(",")


def _with_host(url: str, host: str) -> str:
    account, at, _ = urlsplit(url).netloc.rpartition("@")
    return urlsplit(url)._replace(netloc=f"{account}{at}{host}").geturl()


def _is_valid(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").port != 0
    except ValueError:
        return False


def _parameters(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))


def _is_remote(host: str) -> bool:
    """Return whether a host is another machine. Names without a dot are those of a network of containers."""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return "." in host and not host.startswith("/")
