"""Details of audit entries in the language of the page.

An entry stores its details as English text, so that it stays readable after its objects are deleted. The text is
recognized by its form; names in it stay unchanged.
"""

import re

from django import template
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_noop as _

from dashboard.texts.service_messages import PLACEHOLDER, translate_message
from workspaces.models import ApiKey, AuditEntry, Membership

register = template.Library()

Action = AuditEntry.Action
CHANGE = _("%(about)s: %(words)s")
# Action → the form of its details. Those of other actions are a name or a message.
FORMS: dict[str, str] = {
    Action.KEY_CREATED: _("%(about)s, %(words)s"),
    Action.DOMAIN_CHANGED: _("%(about)s: TLS %(words)s"),
    Action.TEMPLATE_CHANGED: CHANGE,
    Action.WEBHOOK_CHANGED: CHANGE,
    Action.SUPPRESSION_ADDED: _("%(count)s addresses"),
    Action.MEMBER_INVITED: _("%(about)s as %(words)s"),
    Action.MEMBER_ROLE_CHANGED: CHANGE,
    Action.WORKSPACE_CREATED: _("%(about)s, of %(owner)s"),
    Action.ADDRESS_ERASED: _("%(count)s emails"),
}
PATTERNS = {"about": ".+?", "owner": r"\S+", "count": r"\d+", "words": r"[a-z_]+(?:, [a-z_]+)*"}
LABELS = {str(value): str(label) for value, label in (*ApiKey.Scope.choices, *Membership.Role.choices)}
# Other words of the details, for the extraction by bin/messages.py; some are names of fields.
WORDS = (
    _("active"),
    _("alias"),
    _("events"),
    _("format"),
    _("limited"),
    _("name"),
    _("opportunistic"),
    _("required"),
    _("sample data"),
    _("strict variables"),
    _("subject"),
    _("text"),
)


@register.filter
def details(entry: AuditEntry) -> str:
    """Return the details of an entry in the active language; unchanged if their form is unknown."""
    form = FORMS.get(entry.act)
    if get_language() == "en" or form is None:
        return translate_message(entry.about)
    match = re.fullmatch(PLACEHOLDER.sub(_group, form), entry.about, re.DOTALL)
    return gettext(form) % _translated(match.groupdict()) if match else entry.about


def _group(placeholder: re.Match[str]) -> str:
    return f"(?P<{placeholder[1]}>{PATTERNS[placeholder[1]]})"


def _translated(values: dict[str, str]) -> dict[str, str]:
    words = values.get("words", "").split(", ")
    return {**values, "words": ", ".join(gettext(LABELS.get(word, word.replace("_", " "))) for word in words if word)}
