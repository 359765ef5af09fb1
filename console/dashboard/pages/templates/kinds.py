"""Texts of the pages about templates, layouts and partials."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from templates_app.models import Template

KIND = Template.TemplateKind


@dataclass(frozen=True)
class KindTexts:
    """The texts of one kind.

    plural: a filter of the list.
    deleting: the effect of deleting one.
    """

    label: str | Promise
    plural: str | Promise
    add: str | Promise
    saved: str | Promise
    changed: str | Promise
    delete: str | Promise
    deleting: str | Promise
    deleted: str | Promise


KIND_TEXTS = {
    KIND.TEMPLATE: KindTexts(
        label=_("Template"),
        plural=_("Templates"),
        add=_("Create template"),
        saved=_("The template was saved."),
        changed=_("The template was saved. Emails already accepted keep the previous version."),
        delete=_("Delete template"),
        deleting=_("API requests that use this template will be refused. Emails already accepted are still sent."),
        deleted=_("The template was deleted."),
    ),
    KIND.LAYOUT: KindTexts(
        label=_("Layout"),
        plural=_("Layouts"),
        add=_("Create layout"),
        saved=_("The layout was saved."),
        changed=_("The layout was saved. Emails already accepted keep the previous version."),
        delete=_("Delete layout"),
        deleting=_("No template uses it. Emails already accepted are still sent."),
        deleted=_("The layout was deleted."),
    ),
    KIND.PARTIAL: KindTexts(
        label=_("Partial"),
        plural=_("Partials"),
        add=_("Create partial"),
        saved=_("The partial was saved."),
        changed=_("The partial was saved. Emails already accepted keep the previous version."),
        delete=_("Delete partial"),
        deleting=_("No template uses it. Emails already accepted are still sent."),
        deleted=_("The partial was deleted."),
    ),
}


def read_kind(name: str) -> Template.TemplateKind | None:
    """Return the kind with a name, None for other names."""
    return KIND(name) if name in KIND else None


def texts_of(template: Template) -> KindTexts:
    return KIND_TEXTS[KIND(template.kind)]
