"""Limits of API keys to domains and templates, for emails that a key sends or changes (docs/decisions/0104)."""

from django.db.models import QuerySet

from api.errors import NotFound
from emails.models import Email, EmailBatch
from templates_app.models import Template
from templates_app.services import find_templates
from workspaces.errors import DomainNotAllowed, TemplateNotAllowed
from workspaces.key_limits import KeyLimits
from workspaces.models import Workspace


def domain_problem(limits: KeyLimits, name: str) -> DomainNotAllowed | None:
    """Return the problem of a key that cannot send from a domain."""
    if not limits.domains or name in limits.domains:
        return None
    detail = f"This API key can send from {', '.join(limits.domains)} only, not from {name}. Use another key."
    return DomainNotAllowed(detail, field="from", domain=name, allowedDomains=list(limits.domains))


def refuse_domain(limits: KeyLimits, name: str) -> None:
    """Raise DomainNotAllowed if the key cannot send from a domain."""
    if problem := domain_problem(limits, name):
        raise problem


def refuse_template(limits: KeyLimits, template: Template | None) -> None:
    """Raise TemplateNotAllowed if the key cannot send with a template, or without one."""
    if limits.templates and not (template and {template.id, template.alias} & {*limits.templates}):
        raise _template_not_allowed(limits)


def refuse_email(limits: KeyLimits, email: Email) -> None:
    """Raise DomainNotAllowed or TemplateNotAllowed if the key could not send a stored email.

    Raises NotFound for a live email and a test key.
    """
    _refuse_live(limits, email)
    if limits.restricts_emails:
        _refuse_emails(limits, email.workspace, Email.objects.filter(id=email.id))


def refuse_batch(limits: KeyLimits, batch: EmailBatch) -> None:
    """Raise DomainNotAllowed or TemplateNotAllowed if the key could not send all emails of a batch.

    Raises NotFound for a batch of live emails and a test key.
    """
    _refuse_live(limits, batch)
    if limits.restricts_emails:
        _refuse_emails(limits, batch.workspace, Email.objects.filter(batch=batch))


def _refuse_live(limits: KeyLimits, row: Email | EmailBatch) -> None:
    if limits.is_test and not row.is_test:
        raise NotFound


def _refuse_emails(limits: KeyLimits, workspace: Workspace, emails: "QuerySet[Email]") -> None:
    if limits.domains:
        for email in emails.exclude(from_domain__in=limits.domains)[:1]:
            refuse_domain(limits, email.from_domain)
    if limits.templates:
        allowed = {template.id for template in find_templates(workspace, limits.templates).values()}
        if emails.exclude(template_id__in=allowed).exists():
            raise _template_not_allowed(limits)


def _template_not_allowed(limits: KeyLimits) -> TemplateNotAllowed:
    detail = f"This API key can send with these templates only: {', '.join(limits.templates)}. Use another key."
    return TemplateNotAllowed(detail, field="templateId", allowedTemplates=list(limits.templates))
