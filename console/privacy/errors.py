"""API errors of exports of people."""

from typing import Any

from core.api.errors import Problem


class ExportNotReady(Problem):
    """The export is still being made, so that it has no file yet.

    Ask for its `status` until it is `completed`, which takes seconds to minutes.
    """

    status, code, title = 409, "export_not_ready", "Export not ready"
    example = "This export is still being made. Download it when its status is `completed`."

    def __init__(self, detail: str = example, **members: Any) -> None:
        super().__init__(detail, **members)
