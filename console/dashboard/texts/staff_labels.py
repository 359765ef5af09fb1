"""Labels of the staff admin: the names of models and fields, and choices, in the reader's language.

Django derives most of them from the names in the code. Labels in the models would need a migration for each.
bin/messages.py adds those of the fields that the pages show to the catalogues.
"""

from collections.abc import Iterable
from typing import Any

from django.db.models import Field, Model
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _

# Texts of Django and unfold, without a German text or with a poor one.
LABELS = (
    _("Date"),
    _("History"),
    _(
        "Please enter your old password, for security\u2019s sake, and then enter your new password twice so we can "
        "verify you typed it in correctly."
    ),
    _("Select record"),
    _("Enter the same password as before, for verification."),
)


# Names of fields that are no words for people → their labels.
FIELD_LABELS = {
    "act": _("action"),
    "about": _("details"),
    "actor_kind": _("kind of actor"),
    "address": _("IP address"),
    "attempt_count": _("attempts"),
    "id": _("ID"),
    "is_captured": _("captured"),
    "is_superuser": _("all permissions"),
    "is_test": _("test"),
    "retry_count": _("retries"),
    "status_code": _("HTTP status"),
    "stored_size": _("size"),
    "suspended_reason": _("reason"),
    "tls": _("TLS"),
}


def translate_labels(models: Iterable[type[Model]]) -> None:
    for model in models:
        options = model._meta  # noqa: SLF001 - a public API of Django
        # Derived from the singular when it is read, which would be a translation with an English ending.
        options.verbose_name_plural = gettext_lazy(str(options.verbose_name_plural))
        translate(options, "verbose_name")
        translate(options.app_config, "verbose_name")
        for field in options.fields:
            field.verbose_name = FIELD_LABELS.get(field.name, field.verbose_name)
            translate(field, "verbose_name")
            translate_choices(field)


def translate(owner: Any, *names: str) -> None:
    for name in names:
        text = getattr(owner, name)
        # Django's own texts are lazy already, and the translation of an empty text is the head of the catalogue.
        if text and isinstance(text, str):
            setattr(owner, name, gettext_lazy(text))


def translate_choices(field: "Field[Any, Any]") -> None:
    """Translate the labels of choices, except for those that are the values: names of events stay English."""
    # A function of choices stays one, so that migrations name it; it translates its labels.
    if isinstance(field.choices, list) and any(label != value for value, label in field.flatchoices):
        field.choices = [
            (value, label if label == value else gettext_lazy(str(label))) for value, label in field.flatchoices
        ]
