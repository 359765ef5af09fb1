"""Error responses of the API, mapped to exceptions."""

import json
from collections.abc import Mapping
from typing import Any

from postrider_client import errors
from postrider_client.base_errors import ApiError

BY_STATUS: dict[int, type[ApiError]] = {
    400: errors.BadRequest,
    401: errors.AuthenticationError,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.PayloadTooLarge,
    422: errors.Unprocessable,
    429: errors.RateLimitExceeded,
}


def error_from_response(status: int, *, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """Return the exception for an error response. Proxies may respond with any body, such as HTML."""
    given = _json_of(body)
    problem = {
        **given,
        "status": status,
        "code": given.get("code", "unknown"),
        "detail": given.get("detail") or _fallback_detail(status, headers),
        "requestId": given.get("requestId") or headers.get("X-Request-Id"),
    }
    by_status = BY_STATUS.get(status, errors.ServerError if status >= 500 else ApiError)
    return errors.BY_CODE.get(problem["code"], by_status)(problem, headers=headers)


def _json_of(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _fallback_detail(status: int, headers: Mapping[str, str]) -> str:
    if target := headers.get("Location"):
        return f"The server redirects to {target}. Set base_url to the address of the service."
    return f"The server responded with status {status} and no details."
