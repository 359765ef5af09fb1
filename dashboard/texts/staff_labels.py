"""Labels of the staff admin: the names of models and fields, help texts and choices, in the reader's language.

Django derives most of them from the names in the code. Labels in the models would need a migration for each.
"""

from collections.abc import Iterable
from typing import Any

from django.db.models import Field, Model
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _

# Only for the extraction by bin/messages.py.
LABELS = (
    _("about"),
    _("act"),
    _("actor"),
    _("actor kind"),
    _("address"),
    _("address confirmation"),
    _("address confirmed"),
    _("API key"),
    _("attempt count"),
    _("attempts"),
    _("audit entry"),
    _("audit log"),
    _("Cancelled"),
    _("caught mail"),
    _("check due at"),
    _("could not be processed"),
    _("created at"),
    _("data deleted at"),
    _("decoded From header"),
    _("delivered at"),
    _("disabled reason"),
    _("Discarded"),
    _("domain"),
    _("domains"),
    _("due at"),
    _("duplicate"),
    _("email"),
    _("envelope sender; empty for a delivery report"),
    _("error"),
    _("error message"),
    _("event"),
    _("events"),
    _("Exhausted"),
    _("expires at"),
    _("failing since"),
    _("finished at"),
    _("first failure since the last success"),
    _("from domain"),
    _("group"),
    _("id"),
    _("Inbound"),
    _("inbox"),
    _("IP address of the sending host"),
    _("is test"),
    _("kind"),
    _("last checked at"),
    _("last four"),
    _("last used at"),
    _("mail report"),
    _("mail reports"),
    _("management key"),
    _("management keys"),
    _("maximum attempts in flight (webhooks.sending.endpoint_shares)"),
    _("May sign in to the staff admin."),
    _("membership"),
    _("memberships"),
    _("message id"),
    _("message ID assigned by the provider"),
    _("missing since"),
    _("name"),
    _("names another recipient"),
    _("needs manual review"),
    _("no delivery status"),
    _("no such account"),
    _("of the last attempt"),
    _("of the last response"),
    _("pace"),
    _("password"),
    _("password reset"),
    _("peer"),
    _("Pending"),
    _("Person"),
    _("plan"),
    _("provider"),
    _("provider report"),
    _("provider reports"),
    _("Provisioning"),
    _("received at"),
    _("recipient"),
    _("recipient id"),
    _("Recorded"),
    _("reply"),
    _("restrictions"),
    _("retry count"),
    _("revoked at"),
    _("role"),
    _("Scheduled"),
    _("scheduled for"),
    _("scope"),
    _("second factor at"),
    _("security notice"),
    _("sender"),
    _("sent at"),
    _("Staff"),
    _("staff"),
    _("state"),
    _("status"),
    _("status code"),
    _("subject"),
    _("succeeded at"),
    _("suspended reason"),
    _("System email"),
    _("system email"),
    _("system emails"),
    _("Temporary Failure"),
    _("the first success; a replay does not change it"),
    _("the From address, with its name"),
    _("the group of workspaces; empty for all workspaces"),
    _("unknown recipient"),
    _("url"),
    _("user"),
    _("users"),
    _("verdict"),
    _("Verified"),
    _("verified at"),
    _("webhook"),
    _("webhook deliveries"),
    _("webhook delivery"),
    _("webhooks"),
    _("workspace"),
    _("workspaces"),
    # Of Django and unfold, without a German text or with a poor one.
    _("Date"),
    _("History"),
    _(
        "Please enter your old password, for security\u2019s sake, and then enter your new password twice so we can "
        "verify you typed it in correctly."
    ),
    _("Select record"),
    _("Enter the same password as before, for verification."),
)


def translate_labels(models: Iterable[type[Model]]) -> None:
    for model in models:
        options = model._meta  # noqa: SLF001 - a public API of Django
        # Derived from the singular when it is read, which would be a translation with an English ending.
        options.verbose_name_plural = gettext_lazy(str(options.verbose_name_plural))
        translate(options, "verbose_name")
        translate(options.app_config, "verbose_name")
        for field in options.fields:
            translate(field, "verbose_name", "help_text")
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
