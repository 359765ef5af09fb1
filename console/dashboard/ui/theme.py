"""Theme of both sites: django-unfold's settings UNFOLD (staff) and DASHBOARD (workspaces).

All assets are local static files; nothing is loaded from other hosts.
"""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

INDIGO = {
    "50": "oklch(97% .014 277)",
    "100": "oklch(94% .03 277)",
    "200": "oklch(88% .06 277)",
    "300": "oklch(80% .105 277)",
    "400": "oklch(70% .16 277)",
    "500": "oklch(61% .2 277)",
    "600": "oklch(53% .22 277)",
    "700": "oklch(47% .2 277)",
    "800": "oklch(41% .17 277)",
    "900": "oklch(35% .13 277)",
    "950": "oklch(27% .1 277)",
}


def _asset(path: str) -> Callable[[HttpRequest], str]:
    """Return a function for unfold, which calls it for each page: the URL depends on the collected files."""
    return lambda _request: static(f"dashboard/{path}")


favicon = _asset("icon.svg")
SHARED: dict[str, Any] = {
    "SITE_URL": None,
    "SITE_ICON": favicon,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": favicon}],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_LANGUAGES": True,
    "COLORS": {"primary": INDIGO},
    "BORDER_RADIUS": "8px",
    "STYLES": [_asset("dashboard.css")],
    "SCRIPTS": [_asset("names.js"), _asset("copy.js"), _asset("palette.js")],
}


UNFOLD: dict[str, Any] = {
    **SHARED,
    "SITE_TITLE": _("Postrider staff"),
    "SITE_HEADER": "Postrider",
    "SITE_SUBHEADER": _("Staff"),
    "SHOW_HISTORY": True,
    "LANGUAGES": {"action": lambda _request: reverse("admin:preferences")},
    "SIDEBAR": {"navigation": "console.dashboard.ui.navigation.staff_sidebar"},
    "ACCOUNT": {"navigation": "console.dashboard.ui.navigation.staff_account_links"},
    "LOGIN": {"form": "console.dashboard.auth.signin.StaffSignInForm"},
}

DASHBOARD: dict[str, Any] = {
    **SHARED,
    "SITE_TITLE": "Postrider",
    "LANGUAGES": {"action": lambda _request: reverse("dashboard:preferences")},
    "SITE_HEADER": "console.dashboard.ui.navigation.workspace_name",
    "SITE_SUBHEADER": "Postrider",
    "SITE_DROPDOWN": "console.dashboard.ui.navigation.workspace_menu",
    "SCRIPTS": [*SHARED["SCRIPTS"], _asset("shortcuts.js")],
    "SIDEBAR": {"navigation": "console.dashboard.ui.navigation.sidebar"},
    "ACCOUNT": {"navigation": "console.dashboard.ui.navigation.account_links"},
    "LOGIN": {"form": "console.dashboard.auth.signin.SignInForm", "image": _asset("landscape.svg")},
}
