"""HTTP authentication and headers of Postmark's webhooks, which are headers of the endpoint (docs/decisions/0212)."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from interfaces.compat.drafts import as_object
from interfaces.compat.errors import invalid_field
from interfaces.compat.postmark.resources import Resource
from webhooks.headers import MASK, masked

AUTHORIZATION = "Authorization"


def read_headers(body: Mapping[str, Any], *, current: Mapping[str, str]) -> dict[str, Any]:
    """Return the field `headers` of `/v1`, if a request changes it. Raises InvalidFields.

    HttpAuth and HttpHeaders are replaced one by one. The user and the password of a URL are HttpAuth. A masked
    password or value keeps the current one.
    """
    auth = _credentials(body.get("Url")) or body.get("HttpAuth")
    given = body.get("HttpHeaders")
    if auth is None and given is None:
        return {}
    headers = {name: MASK for name in current if not _is_basic(name, current[name])}
    headers = headers if given is None else _named(given)
    basic = _current_basic(current) if auth is None else _basic(as_object(auth, "HttpAuth"), current=current)
    return {"headers": headers | basic}


def without_password(url: Any) -> Any:
    """Return a URL without its user and password."""
    if not isinstance(url, str) or _credentials(url) is None:
        return url
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def shown_headers(headers: Mapping[str, str]) -> Resource:
    """Return HttpAuth and HttpHeaders of a webhook, masked."""
    auth = next((_user(value) for name, value in headers.items() if _is_basic(name, value)), None)
    others = masked(name for name, value in headers.items() if not _is_basic(name, value))
    return {
        "HttpAuth": None if auth is None else {"Username": auth, "Password": MASK},
        "HttpHeaders": [{"Name": name, "Value": value} for name, value in others.items()],
    }


def _credentials(url: Any) -> dict[str, str] | None:
    """Return the user and the password of a URL as HttpAuth."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:
        return None
    if parts is None or parts.username is None:
        return None
    return {"Username": unquote(parts.username), "Password": unquote(parts.password or "")}


def _basic(auth: Mapping[str, Any], *, current: Mapping[str, str]) -> dict[str, str]:
    """Return the header of HttpAuth; none without a user and a password."""
    user, password = auth.get("Username") or "", auth.get("Password") or ""
    if not isinstance(user, str) or not isinstance(password, str) or ":" in user:
        raise invalid_field("HttpAuth", "Username and Password must be strings; Username has no colon.")
    if not user and not password:
        return {}
    if password == MASK:
        return _current_basic(current)
    return {AUTHORIZATION: f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def _current_basic(current: Mapping[str, str]) -> dict[str, str]:
    return {name: MASK for name, value in current.items() if _is_basic(name, value)}


def _is_basic(name: str, value: str) -> bool:
    return name.lower() == AUTHORIZATION.lower() and _user(value) is not None


def _user(value: str) -> str | None:
    """Return the user of Basic credentials (RFC 7617); None for others."""
    scheme, _, encoded = value.partition(" ")
    try:
        user, colon, _password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return user if scheme.lower() == "basic" and colon else None


def _named(headers: Any) -> dict[str, Any]:
    """Return HttpHeaders by name."""
    if not isinstance(headers, list):
        raise invalid_field("HttpHeaders", "This must be a list.")
    entries = [as_object(header, f"HttpHeaders[{index}]") for index, header in enumerate(headers)]
    names = [str(entry.get("Name") or "") for entry in entries]
    if len({name.lower() for name in names}) < len(names):
        raise invalid_field("HttpHeaders", "A header is given twice.")
    return {name: entry.get("Value") for name, entry in zip(names, entries, strict=True)}
