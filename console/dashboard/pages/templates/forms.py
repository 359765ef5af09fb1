"""The form of the template editor: settings of a template, layout or partial, and its texts in each language."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from console.dashboard.pages.templates.languages import (
    NEW,
    field_name,
    field_of_wire,
    inherits_name,
    inherits_text,
    language_name,
    own_texts,
    split_tags,
)
from console.dashboard.ui.forms import ApiForm
from templates_app.content import PARTS, TemplateContent
from templates_app.models import Template
from templates_app.serializers import MAX_LOCALES, TemplateInput

CODE = {"spellcheck": "false", "autocapitalize": "none", "autocomplete": "off", "class": "pr-editor", "wrap": "off"}
TAG = {"placeholder": "en", "autocapitalize": "none", "spellcheck": "false", "autocomplete": "off"}
MAX_SAMPLE_LENGTH = 64 * 1024
MAX_TAGS_LENGTH = 400
# The fields that only a template has.
TEMPLATE_FIELDS = ("subject", "layout", "strict_variables", "sensitive", "deliver_within")


@dataclass(frozen=True)
class LanguagePanel:
    """The fields of one language.

    locale: empty for the texts of the template itself.
    inherits_text: whether an empty text is that of the template itself.
    """

    locale: str
    label: str
    fields: list[forms.BoundField]
    inherits_text: bool

    @property
    def inherits_name(self) -> str:
        return inherits_name(self.locale)

    @property
    def has_errors(self) -> bool:
        return any(field.errors for field in self.fields)


class TemplateForm(ApiForm):
    serializer = TemplateInput
    wire_names = {
        "name": "name",
        "alias": "alias",
        "layout": "layoutId",
        "locale": "locale",
        "fallback": "fallback",
        "subject": "subject",
        "html": "htmlContent",
        "text": "textContent",
        "strict_variables": "strictVariables",
        "sensitive": "sensitive",
        "deliver_within": "deliverWithin",
    }

    name = forms.CharField(label=gettext_lazy("Name"), max_length=100, widget=UnfoldAdminTextInputWidget)
    alias = forms.CharField(
        label=gettext_lazy("Alias"),
        required=False,
        max_length=100,
        widget=UnfoldAdminTextInputWidget({"placeholder": "receipt", "autocapitalize": "none"}),
        help_text=gettext_lazy("Can be used instead of the ID."),
    )
    layout = forms.ChoiceField(label=gettext_lazy("Layout"), required=False, widget=UnfoldAdminSelectWidget)
    subject = forms.CharField(
        label=gettext_lazy("Subject"), strip=False, max_length=998, widget=UnfoldAdminTextInputWidget
    )
    html = forms.CharField(
        label="HTML", strip=False, widget=UnfoldAdminTextareaWidget({**CODE, "rows": 18, "data-language": "html"})
    )
    text = forms.CharField(
        label=gettext_lazy("Text"),
        strip=False,
        required=False,
        widget=UnfoldAdminTextareaWidget({**CODE, "rows": 6, "data-language": "text"}),
        help_text=gettext_lazy("If empty, the text version is generated from the HTML."),
    )
    locale = forms.CharField(
        label=gettext_lazy("Language of these texts"),
        required=False,
        max_length=MAX_TAGS_LENGTH,
        widget=UnfoldAdminTextInputWidget({**TAG, "list": "languages"}),
        help_text=gettext_lazy("A language tag, such as en or de-AT."),
    )
    fallback = forms.CharField(
        label=gettext_lazy("Other languages to try first"),
        required=False,
        max_length=MAX_TAGS_LENGTH,
        widget=UnfoldAdminTextInputWidget({**TAG, "placeholder": "de, fr"}),
        help_text=gettext_lazy("For emails in a language that is missing here, before these texts."),
    )
    strict_variables = forms.BooleanField(
        label=gettext_lazy("Strict variables"),
        required=False,
        widget=UnfoldBooleanWidget,
        help_text=gettext_lazy("Reject emails whose data is missing a variable."),
    )
    sensitive = forms.BooleanField(
        label=gettext_lazy("Sensitive"),
        required=False,
        widget=UnfoldBooleanWidget,
        help_text=gettext_lazy("Nobody can read the content of its emails; it is removed after the last outcome."),
    )
    deliver_within = forms.IntegerField(
        label=gettext_lazy("Send within (seconds)"),
        required=False,
        widget=UnfoldAdminTextInputWidget({"inputmode": "numeric"}),
        help_text=gettext_lazy("Later, an email fails instead of being sent. If empty, as the stream has it."),
    )

    data = forms.CharField(  # type: ignore[assignment]
        label=gettext_lazy("Sample data (JSON)"),
        required=False,
        max_length=MAX_SAMPLE_LENGTH,
        widget=UnfoldAdminTextareaWidget({**CODE, "rows": 9, "data-language": "json"}),
        help_text=gettext_lazy("For the preview and test emails; saved with the template."),
    )

    def __init__(
        self, posted: QueryDict | None, *, kind: str, layouts: Mapping[str, str], initial: Mapping[str, Any]
    ) -> None:
        """Build the fields of a kind and of its languages.

        layouts: the names of the layouts by id.
        initial: the values of the fields; `locales`: the stored texts by language and part.
        """
        super().__init__(posted, initial=dict(initial))
        self.kind, self.posted, self.stored = kind, posted, initial.get("locales", {})
        if kind == Template.TemplateKind.TEMPLATE:
            self.fields["layout"].choices = [("", _("No layout")), *layouts.items()]  # type: ignore[attr-defined]
        else:
            for name in TEMPLATE_FIELDS:
                del self.fields[name]
        given = self.stored if posted is None else dict.fromkeys(posted.getlist("language"))
        # One more than there may be, which the serializer refuses.
        self.locales = [*given][: MAX_LOCALES + 1]
        for locale in self.locales:
            self._add_language(locale)

    @property
    def parts(self) -> list[str]:
        return [part for part in PARTS if part in self.fields]

    @property
    def panels(self) -> list[LanguagePanel]:
        """The languages: first the texts of the template itself."""
        return [self._panel(locale) for locale in ("", *self.locales)]

    @property
    def blank_panel(self) -> LanguagePanel:
        """The fields of a new language."""
        blank = TemplateForm(None, kind=self.kind, layouts={}, initial={"locales": {NEW: {}}})
        return blank.panels[1]

    @property
    def shown(self) -> str:
        """The language to show: the first with an error, else the one that was shown."""
        wrong = next((panel.locale for panel in self.panels if panel.has_errors), None)
        asked = self.posted.get("shown", "") if self.posted else ""
        return wrong if wrong is not None else asked if asked in self.locales else ""

    @property
    def changes(self) -> dict[str, Any]:
        values = {name: value for name, value in self.values.items() if name != "kind"}
        return {**values, "sample_data": self.cleaned_data["data"]}

    def request_body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        body = super().request_body(
            {
                **cleaned,
                **{part: _normalized(cleaned[part]) for part in self.parts},
                "alias": cleaned["alias"] or None,
                "layout": cleaned.get("layout") or None,
                "locale": cleaned["locale"].strip() or None,
                "fallback": split_tags(cleaned["fallback"]),
            }
        )
        return {**body, "kind": self.kind, "locales": {locale: self._texts(cleaned, locale) for locale in self.locales}}

    def wire_errors(self, errors: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, found in super().wire_errors(errors):
            if name == "locales" and isinstance(found, dict):
                for locale, texts in found.items():
                    parts = texts.items() if isinstance(texts, dict) else [("", texts)]
                    yield from ((f"locales.{locale}.{part}", problem) for part, problem in parts)
            else:
                yield name, found

    def _form_field(self, wire_name: str | None) -> str | None:
        name = field_of_wire(wire_name or "")
        return name if name in self.fields else super()._form_field(wire_name)

    def _add_language(self, locale: str) -> None:
        for part in self.parts:
            field = copy.deepcopy(self.base_fields[part])
            field.required, field.initial = False, self.stored.get(locale, {}).get(part, "")
            self.fields[field_name(part, locale)] = field

    def _panel(self, locale: str) -> LanguagePanel:
        fields = [self[field_name(part, locale)] for part in self.parts]
        if locale:
            return LanguagePanel(locale, language_name(locale), fields, self._inherits_text(locale))
        own = str(self["locale"].value() or "")
        return LanguagePanel("", language_name(own) if own else _("Default"), fields, inherits_text=False)

    def _inherits_text(self, locale: str) -> bool:
        if self.posted is None:
            return inherits_text(self.stored.get(locale, {}))
        return inherits_name(locale) in self.posted

    def _texts(self, cleaned: dict[str, Any], locale: str) -> dict[str, str]:
        texts = {part: _normalized(cleaned[field_name(part, locale)]) for part in self.parts}
        own = own_texts(texts, inherits_text=self._inherits_text(locale))
        return {PARTS[part]: text for part, text in own.items()}


def content_values(content: TemplateContent) -> dict[str, Any]:
    """Return the values of the fields for a content."""
    return {
        "subject": content.subject,
        "html": content.html,
        "text": content.text,
        "layout": content.layout_id or "",
        "locale": content.locale,
        "locales": content.locales,
        "fallback": ", ".join(content.fallback),
    }


def _normalized(text: str) -> str:
    """Return a text with LF, as templates have it: browsers submit text areas with CRLF."""
    return text.replace("\r\n", "\n")
