"""The display of the email list: its optional columns and the number of rows, in a cookie (docs/decisions/0262)."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from console.dashboard.ui.listing import PER_PAGE

COLUMNS: dict[str, str | Promise] = {
    "sender": gettext_lazy("Sender"),
    "tags": gettext_lazy("Tags"),
    "stream": gettext_lazy("Stream"),
    "template": gettext_lazy("Template"),
    "opened": gettext_lazy("Opened"),
}
DEFAULT_COLUMNS = ("tags", "stream")
ROWS = (PER_PAGE, 50, 100)
COOKIE = "email_list"
COOKIE_SECONDS = 365 * 24 * 60 * 60


@dataclass(frozen=True)
class ListDisplay:
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    rows: int = PER_PAGE


def read_display(request: HttpRequest) -> ListDisplay:
    """Return the display of a browser; the default without a valid cookie."""
    columns, colon, rows = request.COOKIES.get(COOKIE, "").partition(":")
    if not colon or rows not in map(str, ROWS):
        return ListDisplay()
    return ListDisplay(_known(columns.split(".")), int(rows))


def rows_per_page(request: HttpRequest) -> int:
    return read_display(request).rows


def save_display(request: HttpRequest, response: HttpResponse) -> None:
    """Store the display that the form has sent."""
    rows = request.POST.get("rows", "")
    columns = ".".join(_known(request.POST.getlist("column")))
    response.set_cookie(
        COOKIE,
        f"{columns}:{rows if rows in map(str, ROWS) else PER_PAGE}",
        max_age=COOKIE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _known(names: list[str]) -> tuple[str, ...]:
    return tuple(name for name in COLUMNS if name in names)
