"""Parts of an export: its files, written in pieces to the database while records are read (docs/decisions/0373)."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Q, Sum

from console.privacy.models import SubjectExport, SubjectExportPart

# Small, because the thread that sends files compresses one piece at a time.
PIECE_BYTES = 64 * 1024
# Pieces that are inserted together.
BATCH_BYTES = 1024 * 1024
# The total of an export. Messages that do not fit are left out, and counted.
MAX_BYTES = 512 * 1024 * 1024
# The total of the exports of a workspace that are kept.
MAX_KEPT_BYTES = 4 * 1024 * 1024 * 1024


class PartWriter:
    """Adds records and files to an export, in the transaction of a step.

    A kind of record has one file, a list in JSON, which continues from step to step. Memory: BATCH_BYTES, and the
    record or message that is added.
    """

    def __init__(self, export: SubjectExport) -> None:
        self.export = export
        self.counts = Counter[str](export.counts)
        self._texts: dict[str, list[str]] = {}
        self._text_bytes: Counter[str] = Counter()
        self._about: set[UUID] = set()
        self._waiting: list[SubjectExportPart] = []

    @cached_property
    def _most_bytes(self) -> int:
        """The size up to which files fit into the export. Few kinds of records have files."""
        others = SubjectExport.objects.filter(~Q(email=""), workspace=self.export.workspace_id)
        kept = others.exclude(id=self.export.id).aggregate(size=Sum("size"))["size"] or 0
        return min(MAX_BYTES, MAX_KEPT_BYTES - kept)

    def add(self, kind: str, record: Mapping[str, Any], *, about: UUID | None = None) -> None:
        """Add a record. about: the email or received email that it belongs to."""
        separator = ",\n" if self.counts[kind] else ""
        text = separator + json.dumps(record, cls=DjangoJSONEncoder, ensure_ascii=False, indent=1)
        self.counts[kind] += 1
        self._texts.setdefault(kind, []).append(text)
        self._text_bytes[kind] += len(text)
        if about:
            self._about.add(about)
        if self._text_bytes[kind] >= BATCH_BYTES:
            self._write_texts(kind)

    def add_file(self, name: str, pieces: Iterable[bytes], *, size: int) -> bool:
        """Add a file of `size` bytes; return False if the export, or the workspace, has no place for it."""
        if self.export.size + size > self._most_bytes:
            self.export.left_out += 1
            return False
        for piece in pieces:
            self._write(name, piece)
        return True

    def finish(self) -> None:
        """Write the rest of the step, and the new counts into the row of the export, which the caller saves."""
        for kind in list(self._texts):
            self._write_texts(kind)
        self._flush()
        self.export.counts = dict(self.counts)

    def _write_texts(self, kind: str) -> None:
        text = "".join(self._texts.pop(kind))
        del self._text_bytes[kind]
        self._write(f"{kind}.json", text.encode("utf-8", "replace"))

    def _write(self, name: str, data: bytes) -> None:
        export = self.export
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            part = SubjectExportPart(export_id=export.id, edition=export.edition, file=name, data=piece)
            self._waiting.append(part)
            export.size += len(piece)
            if len(self._waiting) * PIECE_BYTES >= BATCH_BYTES:
                self._flush()

    def _flush(self) -> None:
        """Insert the parts. The first one of a batch has what the records of the batch belong to."""
        if self._waiting:
            self._waiting[0].about = sorted(self._about)
            self._about.clear()
            SubjectExportPart.objects.bulk_create(self._waiting)
            self._waiting.clear()
