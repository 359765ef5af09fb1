"""Theme of both sites: django-unfold's settings UNFOLD (staff) and DASHBOARD (workspaces).

All assets are local static files; nothing is loaded from other hosts.
"""

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


def favicon(request: HttpRequest) -> str:
    return static("dashboard/icon.svg")


def stylesheet(request: HttpRequest) -> str:
    return static("dashboard/dashboard.css")


def copy_script(request: HttpRequest) -> str:
    return static("dashboard/copy.js")


def shortcuts_script(request: HttpRequest) -> str:
    return static("dashboard/shortcuts.js")


def names_script(request: HttpRequest) -> str:
    return static("dashboard/names.js")


def landscape(request: HttpRequest) -> str:
    return static("dashboard/landscape.svg")


SHARED: dict[str, Any] = {
    "SITE_URL": None,
    "SITE_ICON": favicon,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": favicon}],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_LANGUAGES": True,
    "COLORS": {"primary": INDIGO},
    "BORDER_RADIUS": "8px",
    "STYLES": [stylesheet],
    "SCRIPTS": [names_script, copy_script],
}


def preferences_url(request: HttpRequest) -> str:
    return reverse("dashboard:preferences")


def staff_preferences_url(request: HttpRequest) -> str:
    return reverse("admin:preferences")


UNFOLD: dict[str, Any] = {
    **SHARED,
    "SITE_TITLE": _("Postrider staff"),
    "SITE_HEADER": "Postrider",
    "SITE_SUBHEADER": _("Staff"),
    "SHOW_HISTORY": True,
    "LANGUAGES": {"action": staff_preferences_url},
    "SIDEBAR": {"navigation": "dashboard.ui.navigation.staff_sidebar"},
    "ACCOUNT": {"navigation": "dashboard.ui.navigation.staff_account_links"},
    "LOGIN": {"form": "dashboard.auth.signin.StaffSignInForm"},
}

DASHBOARD: dict[str, Any] = {
    **SHARED,
    "SITE_TITLE": "Postrider",
    "LANGUAGES": {"action": preferences_url},
    "SITE_HEADER": "dashboard.ui.navigation.workspace_name",
    "SITE_SUBHEADER": "Postrider",
    "SITE_DROPDOWN": "dashboard.ui.navigation.workspace_menu",
    "SCRIPTS": [*SHARED["SCRIPTS"], shortcuts_script],
    "SIDEBAR": {"navigation": "dashboard.ui.navigation.sidebar"},
    "ACCOUNT": {"navigation": "dashboard.ui.navigation.account_links"},
    "LOGIN": {"form": "dashboard.auth.signin.SignInForm", "image": landscape},
}
