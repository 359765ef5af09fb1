"""Preferences of an account: its language and time zone (docs/decisions/0126 and 0133)."""

from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import get_language_from_request, gettext_lazy, override
from django.utils.translation import gettext as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from console.dashboard.auth.rendering import PageRenderer
from core.workspaces.models import User

UTC = ZoneInfo("UTC")
# Other names are aliases, such as "Etc/GMT+5" and "Japan". They work, but are not suggested.
REGIONS = (
    "Africa/", "America/", "Antarctica/", "Arctic/", "Asia/",
    "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/",
)  # fmt: skip


class PreferencesForm(forms.Form):
    language = forms.ChoiceField(
        label=gettext_lazy("Language"),
        required=False,
        choices=[("", gettext_lazy("As the browser")), *settings.LANGUAGES],
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy(
            "Applies to the dashboard and to emails we send you. The API and the documentation are in English."
        ),
    )
    time_zone = forms.CharField(
        label=gettext_lazy("Time zone"),
        required=False,
        max_length=64,
        widget=UnfoldAdminTextInputWidget({"list": "time-zones", "autocomplete": "off", "spellcheck": "false"}),
        help_text=gettext_lazy("Search for a city. Hover over a time to see it in UTC. Charts always use UTC days."),
    )

    def clean_time_zone(self) -> str:
        name: str = self.cleaned_data["time_zone"]
        if name and name not in time_zone_names():
            raise forms.ValidationError(_("Unknown time zone. Choose one from the list, such as Europe/Berlin."))
        return name


def preferences(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Save the preferences that the form contains: the language menu and the suggested time zone send only one."""
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        return redirect(f"{reverse('admin:login', current_app=request.current_app)}?next={request.path}")
    known = {"language": user.language, "time_zone": user.time_zone}
    form = PreferencesForm({**known, **request.POST.dict()} if request.method == "POST" else None, initial=known)
    if form.is_valid():
        user.language, user.time_zone = form.cleaned_data["language"], form.cleaned_data["time_zone"]
        user.save(update_fields=["language", "time_zone"])
        if "save" in request.POST:
            with override(language_of(request)):
                messages.success(request, _("Your preferences were saved."))
        return redirect(_previous_page(request))
    zones = [name for name in sorted(time_zone_names()) if name == "UTC" or name.startswith(REGIONS)]
    return page(request, "dashboard/preferences.html", title=_("Language and time zone"), form=form, zones=zones)


def language_of(request: HttpRequest) -> str:
    """Return the language of a page: chosen by the account, otherwise the best that the browser asks for."""
    user: Any = request.user
    return getattr(user, "language", "") or get_language_from_request(request)


def time_zone_of(request: HttpRequest) -> ZoneInfo:
    """Return the time zone of a page: chosen by the account, otherwise UTC."""
    user: Any = request.user
    try:
        return ZoneInfo(getattr(user, "time_zone", "") or "UTC")
    except ZoneInfoNotFoundError:
        # Removed from the time zone database since it was chosen.
        return UTC


def needs_time_zone(request: HttpRequest) -> bool:
    """Return whether pages suggest the time zone of the browser: until the account has chosen one."""
    user: Any = request.user
    return getattr(user, "time_zone", None) == ""


@cache
def time_zone_names() -> frozenset[str]:
    return frozenset(available_timezones())


def _previous_page(request: HttpRequest) -> str:
    referrer = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(
        referrer, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return referrer if is_ours else request.path
