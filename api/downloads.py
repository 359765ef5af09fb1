"""Downloads of files that other people wrote: nothing in them may run at our host, which is that of the dashboard.

Every file is saved by the browser, and a type that it would run is that of any bytes (docs/decisions/0232).
"""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from api.transfers import FileResponse

# The media types that a browser would run or show as a page; everything else keeps its type.
ACTIVE_TYPES = ("html", "svg", "xml", "javascript", "ecmascript", "xsl", "pdf", "flash", "mhtml", "multipart")
BINARY = "application/octet-stream"
SAFE_TYPE_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789!#$&-^_.+/")
PIECE_BYTES = 4 * 1024


def download_response(
    request: Any, pieces: Iterable[bytes], *, filename: str, content_type: str, workspace_id: str
) -> FileResponse:
    """Return a file to save. workspace_id: whose share of the open files it is."""
    # DRF's request delegates to Django's.
    plain = getattr(request, "_request", request)
    headers = {
        "Content-Disposition": content_disposition(filename),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    return FileResponse(plain, _small(pieces), workspace_id=workspace_id, content_type=content_type, headers=headers)


def safe_type(content_type: str) -> str:
    """Return a media type that no browser runs."""
    is_plain = content_type.count("/") == 1 and set(content_type) <= SAFE_TYPE_CHARACTERS
    is_active = any(name in content_type for name in ACTIVE_TYPES)
    return content_type if is_plain and not is_active else BINARY


def content_disposition(filename: str) -> str:
    """Return the field that makes a browser save a file: the name in UTF-8 (RFC 6266), without control characters."""
    name = "".join(character if character.isprintable() and character not in '/\\"' else "_" for character in filename)
    ascii_name = name.encode("ascii", "replace").decode().replace("?", "_")
    return f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(name, safe='')}"


def _small(pieces: Iterable[bytes]) -> Iterator[Any]:
    """Yield bytes in pieces of which the thread of slow clients joins some at a time."""
    for piece in pieces:
        for start in range(0, len(piece), PIECE_BYTES):
            yield piece[start : start + PIECE_BYTES]
