"""Checks of drafts, in the order of docs/specification.md (Order of checks) and docs/decisions/0283.

Each question is asked once for all drafts of a request:

1. Which received email does a draft answer, and which domain receives the answers to it? (emails.accept.answers)
2. May the key send from the domain, is the domain registered and verified, and what does it track?
3. Does the template exist, and may the key send with it?
4. May the key send in the stream, and does the stream accept emails?
5. Can the template be rendered, with a value for each variable that it requires?
6. Do the rules of workspace and key allow each recipient? (emails.accept.allowed)

The accepting transaction asks the others:

7. Is a recipient suppressed? (emails.accept.suppressed)
8. Does the batch take more emails? (emails.accept.batches)
9. Does the quota cover all emails? (emails.accept.insertion)

A slow template must not hold locks or an idle transaction, so everything is rendered before the transaction opens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from core.api.admission import until_client_leaves
from core.api.errors import NotFound, Problem
from core.delivery.message.compose import File
from core.lib.coded_texts import CodedText
from core.lib.ids import new_id
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from domains.services import SendingDomain, find_sending_domains
from emails.accept.answers import complete_drafts
from emails.accept.content_warnings import (
    CONTENT_IGNORED,
    DATA_UNUSED,
    LOCALE_MISSING,
    Warnings,
    content_warnings,
    is_other_language,
    locale_warnings,
    missing_variable_warnings,
)
from emails.accept.drafts import BulkDraft, Draft, bulk_email, new_email, shared_fields
from emails.accept.insertion import NewEmail, SharedFields
from emails.errors import ContentNotKept
from emails.key_limits import refuse_email
from emails.models import Email
from emails.rendered_content import render_compiled
from streams.models import Stream
from streams.services import find_sending_streams
from templates_app.content import CompiledContent, RenderedContent, SetParts, compile_version
from templates_app.errors import MissingTemplateVariables
from templates_app.language.rendering import RenderBudget
from templates_app.models import Template
from templates_app.services import find_templates

T = TypeVar("T")


@dataclass(frozen=True)
class _Request:
    """The rows that the drafts of one request name, or their problems, and the work that the drafts share.

    budget: the steps of rendering.
    content_ids: the ids of contents to store, each once.
    """

    domains: dict[str, SendingDomain | Problem]
    templates: dict[str | None, Template | Problem | None]
    streams: dict[str | None, Stream | Problem]
    limits: KeyLimits
    budget: RenderBudget = field(default_factory=RenderBudget)
    content_ids: dict[tuple[str, str, tuple[File, ...]], str] = field(default_factory=dict)

    def rows_of(self, draft: Draft | BulkDraft) -> tuple[SendingDomain, Template | None, Stream]:
        """Return the rows that a draft names. Raises the first problem."""
        return (
            _expect(self.domains[draft.sender.domain]),
            _expect(self.templates[draft.template]),
            _expect(self.streams[draft.stream]),
        )

    def content_id(self, draft: Draft, template: Template | None) -> str | None:
        """Return the id of the content to store: with a template only the files, and nothing without them."""
        if template and not draft.files:
            return None
        key = ("", "", draft.files) if template else (draft.html, draft.text, draft.files)
        return self.content_ids.get(key) or self.content_ids.setdefault(key, new_id("con_"))


def check_draft(workspace: Workspace, draft: Draft, limits: KeyLimits) -> NewEmail:
    """Check one draft, and warn about its HTML.

    Raises the problems of complete_drafts, find_sending_domains, find_templates and find_sending_streams, and
    TemplateSyntaxInvalid, MissingTemplateVariables, TemplateOutputTooLarge.
    """
    email = _expect(check_drafts(workspace, [draft], limits)[0])
    assert email.rendered
    email.warnings.extend(content_warnings(email.rendered, has_tracked_links=bool(email.shared.track_clicks)))
    return email


def check_drafts(
    workspace: Workspace, drafts: Sequence[Draft | Problem], limits: KeyLimits
) -> list[NewEmail | Problem]:
    """Check any number of drafts; return the email or the problem of each. Raises ClientClosedRequest."""
    drafts = complete_drafts(workspace, drafts, limits)
    request = _look_up(workspace, [draft for draft in drafts if isinstance(draft, Draft)], limits)
    return [draft if isinstance(draft, Problem) else _check(draft, request) for draft in until_client_leaves(drafts)]


def check_bulk(workspace: Workspace, draft: BulkDraft, limits: KeyLimits) -> tuple[list[NewEmail], Warnings]:
    """Check and render an email for each recipient of a draft.

    Raises the errors of check_draft, which name the recipients, and ClientClosedRequest.
    """
    request = _look_up(workspace, [draft], limits)
    domain, template, stream = request.rows_of(draft)
    assert template
    default = shared_fields(draft, domain=domain, stream=stream, template=template, limits=limits)
    by_locale: dict[str | None, tuple[CompiledContent, SharedFields]] = {}
    missing: dict[str, list[int]] = {}
    other_languages: dict[str, list[int]] = {}
    emails: list[NewEmail] = []
    warnings: Warnings = []
    for index, recipient in enumerate(until_client_leaves(draft.recipients)):
        locale = recipient.locale or draft.locale
        if locale not in by_locale:
            compiled = _compile(template, locale=locale, subject=draft.subject)
            by_locale[locale] = compiled, replace(default, locale=locale, locale_used=compiled.locale)
        compiled, shared = by_locale[locale]
        place = f"recipients[{index}]"
        rendered = render_compiled(compiled, recipient.template_data, field=place, budget=request.budget)
        for name in rendered.missing:
            missing.setdefault(name, []).append(index)
        if locale and is_other_language(locale, compiled.locale):
            other_languages.setdefault(locale, []).append(index)
        if not emails:
            # The emails differ little; reading the HTML of all could take seconds.
            warnings = content_warnings(rendered, has_tracked_links=bool(shared.track_clicks))
        emails.append(bulk_email(draft, index, subject=rendered.subject, shared=shared))
    if missing and template.strict_variables:
        raise _missing(tuple(missing), indexes=sorted({index for indexes in missing.values() for index in indexes}))
    return emails, [*missing_variable_warnings(missing), *locale_warnings(other_languages), *warnings]


def check_copy(workspace: Workspace, email: Email, limits: KeyLimits) -> Stream:
    """Check an accepted email that is sent again, in the transaction that does so; return its stream.

    Locks the email, so that retention cannot delete its content before the copy refers to it.
    Raises NotFound, ContentNotKept, and the problems of find_sending_domains and find_sending_streams.
    """
    refuse_email(limits, email)
    locked = Email.objects.select_for_update(no_key=True).filter(id=email.id)
    kept = locked.only("sensitive", "content_removed_at").first()
    if kept is None:
        raise NotFound
    if not kept.keeps_content:
        raise ContentNotKept
    _expect(find_sending_domains(workspace, [email.from_domain], limits)[email.from_domain])
    return _expect(find_sending_streams(workspace, [email.stream], limits)[email.stream])


def _look_up(workspace: Workspace, drafts: Sequence[Draft | BulkDraft], limits: KeyLimits) -> _Request:
    return _Request(
        domains=find_sending_domains(workspace, {draft.sender.domain for draft in drafts}, limits),
        templates=find_templates(workspace, {draft.template for draft in drafts}, limits),
        streams=find_sending_streams(workspace, {draft.stream for draft in drafts}, limits),
        limits=limits,
    )


def _check(draft: Draft, request: _Request) -> NewEmail | Problem:
    try:
        domain, template, stream = request.rows_of(draft)
        content_id = request.content_id(draft, template)
        rendered, warnings = _render(draft, template, request.budget)
        shared = shared_fields(
            draft,
            domain=domain,
            stream=stream,
            template=template,
            limits=request.limits,
            content_id=content_id,
            locale_used=rendered.locale,
        )
    except Problem as problem:
        return problem
    return new_email(draft, rendered=rendered, shared=shared, warnings=warnings)


def _render(draft: Draft, template: Template | None, budget: RenderBudget) -> tuple[RenderedContent, Warnings]:
    if template is None:
        rendered = RenderedContent(draft.subject or "", draft.html, draft.text, locale=draft.locale)
        return rendered, [DATA_UNUSED] if draft.template_data is not None else []
    compiled = _compile(template, locale=draft.locale, subject=draft.subject)
    rendered = render_compiled(compiled, draft.template_data or {}, budget=budget)
    if rendered.missing and template.strict_variables:
        raise _missing(rendered.missing)
    ignored = [CONTENT_IGNORED] if draft.html or draft.text else []
    if is_other_language(draft.locale, rendered.locale):
        ignored.append(LOCALE_MISSING | {"locale": draft.locale or ""})
    return rendered, [*ignored, *missing_variable_warnings(rendered.missing)]


def _compile(template: Template, *, locale: str | None, subject: str | None) -> CompiledContent:
    """Compile a template. The request's subject overrides that of the template and is rendered, too."""
    parts = SetParts(template.set_id) if template.set_id else None
    return compile_version(template.version, parts=parts, locale=locale, subject=subject)


def _expect(found: T | Problem) -> T:
    """Return a row that was looked up. Raises the problem in its place."""
    if isinstance(found, Problem):
        raise found
    return found


def _missing(variables: tuple[str, ...], **members: Any) -> MissingTemplateVariables:
    detail = CodedText("templates_app.missing_variables", names=", ".join(variables))
    return MissingTemplateVariables(detail, variables=list(variables), **members)
