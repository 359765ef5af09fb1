"""Pages that refresh while they are visible: htmx asks every five seconds for a page that differs from the shown one.

A page names a version, which changes with the data of its regions and takes one cheap query. If the browser has that
version, the answer is 204 and nothing else is read (docs/decisions/0130).
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

HEADER = "X-Page-Version"


@dataclass(frozen=True)
class Refresh:
    """The version of a page and the ids of the elements that are replaced when it changes."""

    version: str
    regions: tuple[str, ...]

    @property
    def selectors(self) -> str:
        return ",".join(f"#{region}" for region in ("refresh", *self.regions))

    def unchanged(self, request: HttpRequest) -> HttpResponse | None:
        """Return the answer to a browser that shows this version; None for any other."""
        return HttpResponse(status=204) if request.headers.get(HEADER) == self.version else None


def refresh_of(*data: Any, regions: tuple[str, ...]) -> Refresh:
    """Return the refresh of a page. data: the data of the regions; equal data have equal texts."""
    return Refresh(hashlib.sha256(repr(data).encode()).hexdigest()[:16], regions)
