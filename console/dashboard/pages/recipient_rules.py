"""Form of the recipient rules of a workspace or an API key (docs/decisions/0388)."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminEmailInputWidget, UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from console.dashboard.ui.forms import ApiForm
from core.workspaces.api.serializers import RecipientRulesInput
from core.workspaces.models import ApiKey, Workspace
from core.workspaces.recipients.caps import MAX_CAPS, Cap, Exceeding, Per
from core.workspaces.recipients.rules import MAX_ALLOWED, MAX_ENTRY_LENGTH, Otherwise

CHOICES = [
    ("", gettext_lazy("Everybody may get email")),
    (Otherwise.REFUSE.wire_name, gettext_lazy("Refuse: only allowed recipients are accepted")),
    (Otherwise.CAPTURE.wire_name, gettext_lazy("Capture: the inbox keeps the emails of others")),
    (Otherwise.REDIRECT.wire_name, gettext_lazy("Redirect: the emails of others go to one address")),
]

# A cap in the form: the emails, the seconds, and words.
CAP = re.compile(r"(?P<count>\d{1,9})\s*/\s*(?P<seconds>\d{1,9})(?P<template>\s+template)?(?P<drop>\s+drop)?")


class RulesForm(ApiForm):
    """The rules as a form; `values` is None without rules."""

    serializer = RecipientRulesInput
    wire_names: ClassVar = {"allow": "allow", "otherwise": "otherwise", "redirect_to": "redirectTo", "caps": "caps"}

    otherwise = forms.ChoiceField(
        label=gettext_lazy("Other recipients"), choices=CHOICES, required=False, widget=UnfoldAdminSelectWidget
    )
    allow = forms.CharField(
        label=gettext_lazy("Allowed recipients"),
        required=False,
        max_length=MAX_ALLOWED * (MAX_ENTRY_LENGTH + 1),
        widget=UnfoldAdminTextareaWidget({"rows": 6, "placeholder": "ada@example.com\n@example.org\n@*.example.net"}),
        help_text=gettext_lazy(
            "Addresses, domains such as @example.org, or @*.example.net for all subdomains, one per line. "
            "Empty: nobody."
        ),
    )
    redirect_to = forms.CharField(
        label=gettext_lazy("Address for redirected emails"),
        required=False,
        max_length=MAX_ENTRY_LENGTH,
        widget=UnfoldAdminEmailInputWidget({"autocomplete": "off", "placeholder": "qa@example.com"}),
        help_text=gettext_lazy("Only for Redirect."),
    )

    caps = forms.CharField(
        label=gettext_lazy("Caps"),
        required=False,
        max_length=MAX_CAPS * 100,
        widget=UnfoldAdminTextareaWidget({"rows": 3, "placeholder": "5/3600\n1/86400 template drop"}),
        help_text=gettext_lazy(
            "The most emails a recipient gets in some seconds, such as 5/3600, one per line. With the word template, "
            "each template counts alone; with drop, further emails are cancelled, and refused without it."
        ),
    )

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("otherwise") or self.cleaned_data.get("caps"):
            return super().clean()
        return self.cleaned_data

    def clean_caps(self) -> list[dict[str, Any]]:
        lines = [line.strip() for line in self.cleaned_data["caps"].splitlines() if line.strip()]
        found = [CAP.fullmatch(line) for line in lines]
        if not all(found):
            raise forms.ValidationError(_("Write a cap as a number of emails and seconds, such as 5/3600."))
        return [_read_cap(match) for match in found if match]

    def request_body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        caps = {"caps": cleaned["caps"]} if cleaned["caps"] else {}
        if not cleaned["otherwise"]:
            return caps
        entries = [entry for entry in re.split(r"[\s,;]+", cleaned["allow"]) if entry]
        target = {"redirectTo": cleaned["redirect_to"]} if cleaned["redirect_to"] else {}
        return {"allow": entries, "otherwise": cleaned["otherwise"], **target, **caps}

    def wire_errors(self, errors: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        return [(name.partition("[")[0], texts) for name, texts in errors.items()]


def initial_rules(owner: Workspace | ApiKey) -> dict[str, str]:
    """Return the initial values of the form."""
    rules = owner.rules
    if rules is None:
        return {}
    return {
        "otherwise": "" if rules.allow is None else rules.otherwise.wire_name,
        "allow": "\n".join(rules.allow or ()),
        "redirect_to": rules.redirect_to,
        "caps": "\n".join(map(_write_cap, rules.caps)),
    }


def _read_cap(match: re.Match[str]) -> dict[str, Any]:
    per = {"per": Per.RECIPIENT_AND_TEMPLATE.value} if match["template"] else {}
    exceeding = {"exceeding": Exceeding.DROP.value} if match["drop"] else {}
    return {"count": int(match["count"]), "seconds": int(match["seconds"]), **per, **exceeding}


def _write_cap(cap: Cap) -> str:
    words = [f"{cap.count}/{cap.seconds}"]
    words += ["template"] if cap.per is Per.RECIPIENT_AND_TEMPLATE else []
    words += ["drop"] if cap.exceeding is Exceeding.DROP else []
    return " ".join(words)
