"""Recipients of a batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional


@dataclass(frozen=True)
class BatchRecipient:
    """A recipient of a batch. Each recipient gets a separate email."""

    to: str
    template_data: Optional[Mapping[str, Any]] = None
    metadata: Optional[Mapping[str, Any]] = None
