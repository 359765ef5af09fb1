"""Form of the recipient rules of a workspace or an API key (docs/decisions/0388)."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminEmailInputWidget, UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from console.dashboard.ui.forms import ApiForm
from core.workspaces.api.serializers import RecipientRulesInput
from core.workspaces.models import ApiKey, Workspace
from core.workspaces.recipients.rules import MAX_ALLOWED, MAX_ENTRY_LENGTH, Otherwise, RecipientRules

CHOICES = [
    ("", gettext_lazy("No rules: everybody may get email")),
    (Otherwise.REFUSE.wire_name, gettext_lazy("Refuse: only allowed recipients are accepted")),
    (Otherwise.CAPTURE.wire_name, gettext_lazy("Capture: the inbox keeps the emails of others")),
    (Otherwise.REDIRECT.wire_name, gettext_lazy("Redirect: the emails of others go to one address")),
]


class RulesForm(ApiForm):
    """The rules as a form; `values` is None without rules."""

    serializer = RecipientRulesInput
    wire_names: ClassVar = {"allow": "allow", "otherwise": "otherwise", "redirect_to": "redirectTo"}

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

    def clean(self) -> dict[str, Any]:
        if self.cleaned_data.get("otherwise"):
            return super().clean()
        return self.cleaned_data

    def request_body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        entries = [entry for entry in re.split(r"[\s,;]+", cleaned["allow"]) if entry]
        target = {"redirectTo": cleaned["redirect_to"]} if cleaned["redirect_to"] else {}
        return {"allow": entries, "otherwise": cleaned["otherwise"], **target}

    def wire_errors(self, errors: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        return [(name.partition("[")[0], texts) for name, texts in errors.items()]


def initial_rules(owner: Workspace | ApiKey) -> dict[str, str]:
    """Return the initial values of the form."""
    rules = RecipientRules.from_json(owner.recipient_rules)
    if rules is None:
        return {}
    return {
        "otherwise": rules.otherwise.wire_name,
        "allow": "\n".join(rules.allow or ()),
        "redirect_to": rules.redirect_to,
    }
