"""Names of browsers and systems in User-Agent headers."""

from django.utils.translation import gettext as _

# The first part that a header contains. Most browsers also name those that they want to be taken for.
BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser/": "Samsung Internet",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "CriOS/": "Chrome",
    "Chromium/": "Chromium",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "Macintosh": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}


def browser_name(agent: str) -> str:
    """Return the browser and the system of a User-Agent header, such as `Firefox, Windows`."""
    found = [next((name for part, name in table.items() if part in agent), "") for table in (BROWSERS, SYSTEMS)]
    return ", ".join(filter(None, found)) or _("Unknown browser")
