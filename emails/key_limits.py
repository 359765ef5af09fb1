"""Limits of API keys to domains and templates, for emails that a key sends or changes (docs/decisions/0104)."""

from typing import Any

from core.api.errors import NotFound
from core.workspaces.errors import DomainNotAllowed, TemplateNotAllowed
from core.workspaces.key_limits import KeyLimits, LimitedQuerySet
from emails.models import Email, EmailBatch
from templates_app.models import Template


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
    """Raise NotFound if a stored email is outside of the limits of the key."""
    _refuse_outside(Email.objects.filter(id=email.id), limits, workspace_id=email.workspace_id)


def refuse_batch(limits: KeyLimits, batch: EmailBatch) -> None:
    """Raise NotFound if a batch, or one of its emails, is outside of the limits of the key."""
    _refuse_outside(EmailBatch.objects.filter(id=batch.id), limits, workspace_id=batch.workspace_id)


def _refuse_outside(rows: LimitedQuerySet[Any], limits: KeyLimits, *, workspace_id: str) -> None:
    is_limited = limits.is_test or limits.restricts_emails
    if is_limited and not rows.within(limits, workspace_id=workspace_id).exists():
        raise NotFound


def _template_not_allowed(limits: KeyLimits) -> TemplateNotAllowed:
    detail = f"This API key can send with these templates only: {', '.join(limits.templates)}. Use another key."
    return TemplateNotAllowed(detail, field="templateId", allowedTemplates=list(limits.templates))
