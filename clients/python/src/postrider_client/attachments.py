"""Attachments of emails."""

from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union


@dataclass(frozen=True)
class Attachment:
    """A file.

    content_id: makes it an inline image for `cid:` in HTML.
    content_type: guessed by default.
    alternative: whether it is another form of the email, such as an invitation of the type
        `text/calendar; method=REQUEST`, for mail programs that know its type.
    """

    filename: str
    content: bytes
    content_type: Optional[str] = None
    content_id: Optional[str] = None
    alternative: Optional[bool] = None

    @classmethod
    def from_path(
        cls, path: Union[str, Path], *, content_type: Optional[str] = None, content_id: Optional[str] = None
    ) -> "Attachment":
        """Read an attachment from a file. Raises OSError."""
        path = Path(path)
        return cls(path.name, path.read_bytes(), content_type, content_id)
