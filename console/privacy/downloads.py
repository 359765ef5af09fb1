"""Downloads of exports of people, with a key or by an owner."""

from typing import Any

from console.privacy.exporting.archive import archive_pieces
from console.privacy.models import SubjectExport
from core.api.transfers import BINARY, FileResponse, download_response


def export_response(request: Any, export: SubjectExport) -> FileResponse:
    """Return the file of a completed export, which is made while it is sent."""
    return download_response(
        request,
        archive_pieces(export),
        filename=f"{export.id}.zip",
        content_type=BINARY,
        workspace_id=export.workspace_id,
    )
