"""Checks of drafts before the accepting transaction: sending domain, template and rendering.

A slow template must not hold locks or an idle transaction, so everything is rendered before the transaction opens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from api.errors import Problem
from delivery.message.compose import File
from domains.services import check_sending_domain, find_domain_problems
from emails.accept.content_warnings import CONTENT_IGNORED, DATA_UNUSED, Warnings, html_warnings
from emails.accept.drafts import BatchDraft, Draft, batch_email, new_email, shared_fields
from emails.accept.insertion import NewContent, NewEmail
from emails.limits import domain_problem, refuse_domain, refuse_template
from emails.rendered_content import compile_with_subject, missing_variable_warnings, render_compiled
from templates_app.errors import MissingTemplateVariables
from templates_app.language.rendering import RenderBudget
from templates_app.models import Template
from templates_app.services import (
    RenderedContent,
    find_template,
    find_templates,
    template_not_found,
    version_content,
)
from workspaces.key_limits import KeyLimits
from workspaces.models import Workspace


@dataclass(frozen=True)
class CheckedEmail:
    """An email that passed all checks except suppressions and quota. content: None if everything is in the template."""

    email: NewEmail
    content: NewContent | None
    rendered: RenderedContent
    warnings: Warnings


@dataclass(frozen=True)
class _SharedWork:
    """The work that the drafts of one request share: rendering steps, and contents stored once."""

    is_test: bool = False
    budget: RenderBudget = field(default_factory=RenderBudget)
    contents: dict[tuple[str, str, tuple[File, ...]], NewContent] = field(default_factory=dict)

    def content(self, html: str, text: str, files: tuple[File, ...]) -> NewContent:
        key = (html, text, files)
        return self.contents.get(key) or self.contents.setdefault(key, NewContent(*key))


def check_draft(workspace: Workspace, draft: Draft, limits: KeyLimits) -> CheckedEmail:
    """Check domain and template, in this order (docs/specification.md, Order of checks), and warn about the HTML.

    Raises DomainNotAllowed, DomainNotRegistered, DomainNotVerified, TemplateNotFound, TemplateNotAllowed,
    TemplateSyntaxInvalid, MissingTemplateVariables, TemplateOutputTooLarge.
    """
    refuse_domain(limits, draft.sender.domain)
    check_sending_domain(workspace, name=draft.sender.domain)
    template = find_template(workspace, draft.template) if draft.template else None
    refuse_template(limits, template)
    checked = _checked(draft, template, _SharedWork(limits.is_test))
    warnings = html_warnings(checked.rendered.html, track_clicks=draft.track_clicks)
    return replace(checked, warnings=[*checked.warnings, *warnings])


def check_drafts(
    workspace: Workspace, drafts: Sequence[Draft | Problem], limits: KeyLimits
) -> list[CheckedEmail | Problem]:
    """Check any number of drafts with one query for domains and one for templates; return a result for each."""
    given = [draft for draft in drafts if isinstance(draft, Draft)]
    names = {draft.sender.domain for draft in given}
    not_allowed = {name: refusal for name in names if (refusal := domain_problem(limits, name))}
    domain_problems = find_domain_problems(workspace, names) | not_allowed
    templates = find_templates(workspace, {draft.template for draft in given if draft.template})
    work = _SharedWork(limits.is_test)
    results: list[CheckedEmail | Problem] = []
    for draft in drafts:
        problem = draft if isinstance(draft, Problem) else domain_problems.get(draft.sender.domain)
        results.append(problem or _checked_or_problem(draft, templates, work, limits))  # type: ignore[arg-type]
    return results


def check_batch(workspace: Workspace, batch: BatchDraft, limits: KeyLimits) -> tuple[list[NewEmail], Warnings]:
    """Check and render a batch. Raises the errors of check_draft, which name the recipients."""
    refuse_domain(limits, batch.sender.domain)
    check_sending_domain(workspace, name=batch.sender.domain)
    template = find_template(workspace, batch.template)
    refuse_template(limits, template)
    compiled = compile_with_subject(version_content(template.version), subject=batch.subject)
    shared = shared_fields(batch, version_id=template.version_id, template_id=template.id, is_test=limits.is_test)
    missing: dict[str, list[int]] = {}
    emails: list[NewEmail] = []
    warnings: Warnings = []
    budget = RenderBudget()
    for index, recipient in enumerate(batch.recipients):
        rendered = render_compiled(compiled, recipient.template_data, field=f"recipients[{index}]", budget=budget)
        for name in rendered.missing:
            missing.setdefault(name, []).append(index)
        if not emails:
            # The emails differ little; reading the HTML of all could take seconds.
            warnings = html_warnings(rendered.html, track_clicks=True)
        emails.append(batch_email(batch, recipient, subject=rendered.subject, shared=shared))
    if missing and template.strict_variables:
        raise _missing(tuple(missing), indexes=sorted({index for indexes in missing.values() for index in indexes}))
    return emails, [*missing_variable_warnings(missing), *warnings]


def _checked_or_problem(
    draft: Draft, templates: dict[str, Template], work: _SharedWork, limits: KeyLimits
) -> CheckedEmail | Problem:
    template = templates.get(draft.template) if draft.template else None
    if draft.template and template is None:
        return template_not_found(draft.template)
    try:
        refuse_template(limits, template)
        return _checked(draft, template, work)
    except Problem as problem:
        return problem


def _checked(draft: Draft, template: Template | None, work: _SharedWork) -> CheckedEmail:
    return _from_template(draft, template, work) if template else _from_draft(draft, work)


def _from_draft(draft: Draft, work: _SharedWork) -> CheckedEmail:
    content = work.content(draft.html, draft.text, draft.files)
    subject = draft.subject or ""
    shared = shared_fields(draft, content_id=content.id, is_test=work.is_test)
    email = new_email(draft, subject=subject, shared=shared)
    warnings = [DATA_UNUSED] if draft.template_data is not None else []
    return CheckedEmail(email, content, RenderedContent(subject, draft.html, draft.text), warnings)


def _from_template(draft: Draft, template: Template, work: _SharedWork) -> CheckedEmail:
    compiled = compile_with_subject(version_content(template.version), subject=draft.subject)
    rendered = render_compiled(compiled, draft.template_data or {}, budget=work.budget)
    if rendered.missing and template.strict_variables:
        raise _missing(rendered.missing)
    content = work.content("", "", draft.files) if draft.files else None
    content_id = content.id if content else None
    references = {"content_id": content_id, "version_id": template.version_id, "template_id": template.id}
    shared = shared_fields(draft, **references, is_test=work.is_test)
    email = new_email(draft, subject=rendered.subject, shared=shared)
    ignored = [CONTENT_IGNORED] if draft.html or draft.text else []
    return CheckedEmail(email, content, rendered, [*ignored, *missing_variable_warnings(rendered.missing)])


def _missing(variables: tuple[str, ...], **members: Any) -> MissingTemplateVariables:
    detail = (
        f"The data has no value for {', '.join(variables)}, and the template has strictVariables. "
        "Add a value or a default."
    )
    return MissingTemplateVariables(detail, variables=list(variables), **members)
