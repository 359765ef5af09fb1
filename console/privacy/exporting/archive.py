"""Archive of an export: a zip that is made while it is downloaded, from parts read one by one."""

import json
import zipfile
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from console.privacy.models import SubjectExport, SubjectExportPart

LISTS = ".json"
# Fast, since the thread that sends files makes it; messages are mostly base64.
COMPRESSION_LEVEL = 1


class _Outlet:
    """A file that zipfile writes and cannot seek; what was written is taken from it."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: zipfile calls it."""

    def take(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data


def archive_pieces(export: SubjectExport) -> Iterator[bytes]:
    """Yield the zip of a completed export: `person.json`, a list of each kind of record, and the messages.

    It ends early, as an invalid file, if the export is deleted meanwhile.
    """
    outlet: Any = _Outlet()
    parts = SubjectExportPart.objects.filter(export=export, edition=export.edition)
    numbers = parts.order_by("file", "number").values_list("file", "number")
    with zipfile.ZipFile(outlet, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION_LEVEL) as archive:
        with _open(archive, export, "person.json") as file:
            file.write(_manifest(export))
        for name, found in groupby(numbers, key=lambda row: row[0]):
            is_list = name.endswith(LISTS)
            with _open(archive, export, name) as file:
                file.write(b"[\n" if is_list else b"")
                for _, number in found:
                    file.write(bytes(parts.values_list("data", flat=True).get(number=number)))
                    yield outlet.take()
                file.write(b"\n]\n" if is_list else b"")
    yield outlet.take()


def _open(archive: zipfile.ZipFile, export: SubjectExport, name: str) -> Any:
    created = export.created_at
    info = zipfile.ZipInfo(name, (created.year, created.month, created.day, created.hour, created.minute, 0))
    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
    return archive.open(info, "w")


def _manifest(export: SubjectExport) -> bytes:
    values = {
        "id": export.id,
        "email": export.email,
        "workspace": {"id": export.workspace_id, "name": export.workspace.name},
        "requestedAt": export.created_at,
        "completedAt": export.completed_at,
        "records": export.records,
        "messagesLeftOut": export.left_out,
    }
    return json.dumps(values, cls=DjangoJSONEncoder, ensure_ascii=False, indent=1).encode() + b"\n"
