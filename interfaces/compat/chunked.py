"""Chunked bodies: some libraries, such as Resend's for Go and those for .NET, send no Content-Length."""

import io
from collections.abc import Mapping
from typing import Any

from gunicorn.http.errors import ParseException
from rest_framework.request import Request

from core.api.errors import InvalidJson, PayloadTooLarge


def is_chunked(meta: Mapping[str, Any]) -> bool:
    """Return whether the body is chunked and the server marks its end."""
    return meta.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked" and bool(meta.get("wsgi.input_terminated"))


def read_chunks(request: Request, *, max_bytes: int) -> None:
    """Read a chunked body, as if it had come with its length. Raises PayloadTooLarge and InvalidJson."""
    try:
        body = request.META["wsgi.input"].read(max_bytes + 1)
    except (OSError, ParseException) as error:
        raise InvalidJson("The body did not arrive completely.") from error
    if len(body) > max_bytes:
        raise PayloadTooLarge(f"At most {max_bytes:,} bytes are allowed here.")
    request.META["CONTENT_LENGTH"] = str(len(body))
    request._request._stream = io.BytesIO(body)  # noqa: SLF001 - Django reads no chunks
