"""Checks of drafts before the accepting transaction: sending domain, template and rendering.

A slow template must not hold locks or an idle transaction, so everything is rendered before the transaction opens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.api.errors import Problem
from core.delivery.message.compose import File
from core.lib.coded_texts import CodedText
from core.lib.ids import new_id
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from domains.services import SendingDomain, check_sending_domain, find_sending_domains
from emails.accept.content_warnings import CONTENT_IGNORED, DATA_UNUSED, Warnings, html_warnings
from emails.accept.drafts import BulkDraft, Draft, bulk_email, new_email, shared_fields
from emails.accept.insertion import NewEmail
from emails.key_limits import domain_problem, refuse_domain, refuse_template
from emails.rendered_content import compile_with_subject, missing_variable_warnings, render_compiled
from emails.send_options import DOMAIN_SETTINGS
from streams.models import Stream
from streams.services import find_sending_streams, stream_for_sending
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


@dataclass(frozen=True)
class _SharedWork:
    """The work that the drafts of one request share: rendering steps, and contents stored once."""

    is_test: bool = False
    budget: RenderBudget = field(default_factory=RenderBudget)
    content_ids: dict[tuple[str, str, tuple[File, ...]], str] = field(default_factory=dict)

    def content_id(self, html: str, text: str, files: tuple[File, ...]) -> str:
        key = (html, text, files)
        return self.content_ids.get(key) or self.content_ids.setdefault(key, new_id("con_"))


def check_draft(workspace: Workspace, draft: Draft, limits: KeyLimits) -> NewEmail:
    """Check domain and template, in this order (docs/specification.md, Order of checks), and warn about the HTML.

    Raises DomainNotAllowed, DomainNotRegistered, DomainNotVerified, TemplateNotFound, TemplateNotAllowed,
    StreamNotAllowed, StreamNotFound, StreamArchived, StreamPaused, TemplateSyntaxInvalid, MissingTemplateVariables,
    TemplateOutputTooLarge.
    """
    refuse_domain(limits, draft.sender.domain)
    draft = _with_domain(draft, check_sending_domain(workspace, name=draft.sender.domain))
    template = find_template(workspace, draft.template) if draft.template else None
    refuse_template(limits, template)
    stream = stream_for_sending(workspace, draft.stream, limits)
    email = _checked(draft, stream, template, _SharedWork(limits.is_test))
    assert email.rendered
    email.warnings.extend(html_warnings(email.rendered.html, has_tracked_links=bool(email.shared.track_clicks)))
    return email


def check_drafts(
    workspace: Workspace, drafts: Sequence[Draft | Problem], limits: KeyLimits
) -> list[NewEmail | Problem]:
    """Check any number of drafts with one query for domains and one for templates; return a result for each."""
    translated = [draft for draft in drafts if isinstance(draft, Draft)]
    names = {draft.sender.domain for draft in translated}
    not_allowed = {name: refusal for name in names if (refusal := domain_problem(limits, name))}
    domains = find_sending_domains(workspace, names) | not_allowed
    templates = find_templates(workspace, {draft.template for draft in translated if draft.template})
    streams = find_sending_streams(workspace, {draft.stream for draft in translated}, limits)
    work = _SharedWork(limits.is_test)

    def check(draft: Draft | Problem) -> NewEmail | Problem:
        if isinstance(draft, Problem):
            return draft
        domain = domains[draft.sender.domain]
        if isinstance(domain, Problem):
            return domain
        return _checked_or_problem(_with_domain(draft, domain), streams[draft.stream], templates, work, limits)

    return [check(draft) for draft in drafts]


def check_bulk(workspace: Workspace, draft: BulkDraft, limits: KeyLimits) -> tuple[list[NewEmail], Warnings]:
    """Check and render an email for each recipient of a draft.

    Raises the errors of check_draft, which name the recipients.
    """
    refuse_domain(limits, draft.sender.domain)
    domain = check_sending_domain(workspace, name=draft.sender.domain)
    template = find_template(workspace, draft.template)
    refuse_template(limits, template)
    stream = stream_for_sending(workspace, draft.stream, limits)
    compiled = compile_with_subject(version_content(template.version), subject=draft.subject)
    shared = shared_fields(
        draft,
        stream,
        template_version_id=template.version_id,
        template_id=template.id,
        is_test=limits.is_test,
        **_switched_off(domain),
    )
    missing: dict[str, list[int]] = {}
    emails: list[NewEmail] = []
    warnings: Warnings = []
    budget = RenderBudget()
    for index, recipient in enumerate(draft.recipients):
        rendered = render_compiled(compiled, recipient.template_data, field=f"recipients[{index}]", budget=budget)
        for name in rendered.missing:
            missing.setdefault(name, []).append(index)
        if not emails:
            # The emails differ little; reading the HTML of all could take seconds.
            warnings = html_warnings(rendered.html, has_tracked_links=bool(shared.track_clicks))
        emails.append(bulk_email(draft, recipient, subject=rendered.subject, shared=shared))
    if missing and template.strict_variables:
        raise _missing(tuple(missing), indexes=sorted({index for indexes in missing.values() for index in indexes}))
    return emails, [*missing_variable_warnings(missing), *warnings]


def _with_domain(draft: Draft, domain: SendingDomain) -> Draft:
    """Return a draft without what its domain has switched off, unless the request asks for it."""
    changes = {name: value for name, value in _switched_off(domain).items() if getattr(draft, name) is None}
    return replace(draft, **changes) if changes else draft


def _switched_off(domain: SendingDomain) -> dict[str, Any]:
    return {option: False for option, setting in DOMAIN_SETTINGS.items() if not getattr(domain, setting)}


def _checked_or_problem(
    draft: Draft, stream: Stream | Problem, templates: dict[str, Template], work: _SharedWork, limits: KeyLimits
) -> NewEmail | Problem:
    template = templates.get(draft.template) if draft.template else None
    if draft.template and template is None:
        return template_not_found(draft.template)
    try:
        refuse_template(limits, template)
        return stream if isinstance(stream, Problem) else _checked(draft, stream, template, work)
    except Problem as problem:
        return problem


def _checked(draft: Draft, stream: Stream, template: Template | None, work: _SharedWork) -> NewEmail:
    return _from_template(draft, stream, template, work) if template else _from_draft(draft, stream, work)


def _from_draft(draft: Draft, stream: Stream, work: _SharedWork) -> NewEmail:
    content_id = work.content_id(draft.html, draft.text, draft.files)
    shared = shared_fields(draft, stream, content_id=content_id, is_test=work.is_test)
    rendered = RenderedContent(draft.subject or "", draft.html, draft.text)
    warnings = [DATA_UNUSED] if draft.template_data is not None else []
    return new_email(draft, rendered=rendered, shared=shared, warnings=warnings)


def _from_template(draft: Draft, stream: Stream, template: Template, work: _SharedWork) -> NewEmail:
    compiled = compile_with_subject(version_content(template.version), subject=draft.subject)
    rendered = render_compiled(compiled, draft.template_data or {}, budget=work.budget)
    if rendered.missing and template.strict_variables:
        raise _missing(rendered.missing)
    shared = shared_fields(
        draft,
        stream,
        content_id=work.content_id("", "", draft.files) if draft.files else None,
        template_version_id=template.version_id,
        template_id=template.id,
        is_test=work.is_test,
    )
    ignored = [CONTENT_IGNORED] if draft.html or draft.text else []
    warnings = [*ignored, *missing_variable_warnings(rendered.missing)]
    return new_email(draft, rendered=rendered, shared=shared, warnings=warnings)


def _missing(variables: tuple[str, ...], **members: Any) -> MissingTemplateVariables:
    detail = CodedText("templates_app.missing_variables", names=", ".join(variables))
    return MissingTemplateVariables(detail, variables=list(variables), **members)
