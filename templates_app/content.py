"""Content of templates: its texts by locale, compiled and rendered, with a layout and partials."""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.delivery.message.html import ATTRIBUTE, TOKEN
from core.lib.coded_texts import CodedText
from templates_app.errors import TemplateSyntaxInvalid
from templates_app.language.errors import TemplateSyntaxError, syntax_error
from templates_app.language.locales import locale_chain
from templates_app.language.nodes import Block
from templates_app.language.rendering import RenderBudget, RenderMode, render
from templates_app.language.syntax import (
    CONTENT,
    CompiledTemplate,
    compile_layout,
    compile_partial,
    compile_template,
)
from templates_app.models import Template, TemplateSet, TemplateVersion

COMPILED_CACHE_SIZE = 256
# The parts of a content, with their names on the wire.
PARTS = {"subject": "subject", "html": "htmlContent", "text": "textContent"}
# Before the first element (HTML, section 13.1): a byte order mark, space, comments and the document type.
PROLOGUE = re.compile(r"\ufeff?(?>(?:\s++|<!--(?>(?:[^-]++|-(?!->))*)-->|<[!?][^>]*+>)*)")

Texts = Mapping[str, str]


@dataclass(frozen=True)
class TemplateContent:
    """The content of a template before compilation.

    locale: the language of subject, html and text; empty if it is not known.
    locales: the texts of other languages, such as {"de": {"subject": …}}; what one lacks is as above.
    fallback: the locales that are tried before the texts above.
    """

    subject: str
    html: str
    text: str = ""
    locale: str = ""
    locales: Mapping[str, Texts] = field(default_factory=dict, hash=False)
    fallback: tuple[str, ...] = ()
    layout_id: str | None = None

    def chain(self, asked: str | None) -> tuple[str, ...]:
        """Return the locales in the order in which they are looked up: those that are asked for, then the fallback."""
        if asked:
            return locale_chain([asked, *self.fallback])
        return locale_chain([self.locale]) if self.locale else ()

    def localized(self, chain: Sequence[str]) -> tuple["TemplateContent", str | None]:
        """Return the texts of the first locale that exists, and the locale; None for texts of an unknown language."""
        for locale in chain:
            if locale in self.locales:
                texts = self.locales[locale]
                return TemplateContent(*(texts.get(part, getattr(self, part)) for part in PARTS)), locale
            if locale == self.locale:
                break
        return TemplateContent(self.subject, self.html, self.text), self.locale or None

    def texts(self) -> Iterator[tuple[str, str, str]]:
        """Yield all texts, each with its part and its field on the wire."""
        for part, name in PARTS.items():
            yield part, name, getattr(self, part)
        for locale, texts in self.locales.items():
            for part, text in texts.items():
                yield part, f"locales.{locale}.{PARTS[part]}", text


@dataclass(frozen=True)
class CompiledContent:
    """Compiled texts. locale: that of the texts, None if it is not known."""

    subject: CompiledTemplate
    html: CompiledTemplate
    text: CompiledTemplate
    locale: str | None = None


@dataclass(frozen=True)
class RenderedContent:
    """Subject, HTML and text for one recipient.

    missing: the variables of a template without a value, in order of appearance.
    locale: the language of the texts, None if it is not known.
    """

    subject: str
    html: str
    text: str
    missing: tuple[str, ...] = ()
    locale: str | None = None


@dataclass(frozen=True)
class PartialPlace:
    """The uses of a partial in a content: the largest number in one text, and the first place in that text."""

    count: int
    offset: int
    source: str
    field: str

    def problem(self, message: str) -> TemplateSyntaxInvalid:
        """Return the error of this place."""
        return _syntax_problem(self.field, syntax_error(self.source, self.offset, message))


def check_content(content: TemplateContent, kind: str) -> dict[str, PartialPlace]:
    """Compile all texts of a content; return the partials that they name.

    Raises TemplateSyntaxInvalid with field, line and column.
    """
    places: dict[str, PartialPlace] = {}
    for part, name, source in content.texts():
        for partial, use in _compiled(name, source, compiler=_compiler(kind, part, source)).partials.items():
            if partial not in places or places[partial].count < use.count:
                places[partial] = PartialPlace(use.count, use.offset, source, name)
    return places


def compile_draft(content: TemplateContent, kind: str = Template.TemplateKind.TEMPLATE) -> CompiledContent:
    """Compile unsaved texts, without a layout and partials. Raises TemplateSyntaxInvalid with field, line and column.

    Bypasses the cache: each keystroke is new content and would evict the templates in use.
    """
    subject, html, text = (
        _compiled(name, source := getattr(content, part), compiler=_compiler(kind, part, source))
        for part, name in PARTS.items()
    )
    return CompiledContent(subject, html, text)


compile_content = functools.lru_cache(maxsize=COMPILED_CACHE_SIZE)(compile_draft)


@functools.lru_cache(maxsize=COMPILED_CACHE_SIZE)
def compile_without_partials(content: TemplateContent) -> CompiledContent:
    """Compile texts that belong to no template. Raises TemplateSyntaxInvalid, also for a partial."""
    for name, place in check_content(content, Template.TemplateKind.TEMPLATE).items():
        raise place.problem(unknown_partial(name))
    return compile_content(content)


@dataclass(frozen=True)
class SetParts:
    """The layout and partials of a set, which is immutable: two are equal if their ids are.

    versions: read when they are needed if they are None. A queue processor reads them beforehand.
    """

    set_id: str
    versions: Mapping[str, TemplateVersion] | None = field(default=None, compare=False)

    def contents(self) -> dict[str, TemplateContent]:
        versions = self.versions
        if versions is None:
            versions = TemplateSet.objects.get(id=self.set_id).load_parts()
        return version_contents(versions)


def compile_version(
    version: TemplateVersion, *, parts: SetParts | None, locale: str | None, subject: str | None = None
) -> CompiledContent:
    """Compile a template version with its layout and partials.

    locale: the one that is asked for.
    subject: replaces that of the template.
    Raises TemplateSyntaxInvalid for that subject; the template was compiled when it was created.
    """
    if subject is None and not (parts or locale or version.locale):
        # The usual case takes half of the time.
        return compile_content(TemplateContent(version.subject, version.html, version.text))
    return _compile_localized(version, parts, locale, subject)


# Versions are immutable, and equal if their ids are.
@functools.lru_cache(maxsize=COMPILED_CACHE_SIZE)
def _compile_localized(
    version: TemplateVersion, parts: SetParts | None, locale: str | None, subject: str | None
) -> CompiledContent:
    return compile_linked(version_content(version), parts.contents() if parts else {}, locale=locale, subject=subject)


def compile_linked(
    content: TemplateContent,
    parts: Mapping[str, TemplateContent],
    *,
    locale: str | None,
    kind: str = Template.TemplateKind.TEMPLATE,
    subject: str | None = None,
) -> CompiledContent:
    """Compile a content with its layout and partials, each in the first locale that it has.

    locale: the one that is asked for.
    subject: replaces that of the content.
    Raises TemplateSyntaxInvalid, also for a partial that is missing in `parts`.
    """
    chain = content.chain(locale)
    texts, used = content.localized(chain)
    own = compile_draft(texts if subject is None else replace(texts, subject=subject), kind)
    compiled = {name: _compile_part(part, name, chain=chain) for name, part in parts.items()}
    layout = compiled.pop(TemplateSet.LAYOUT, None)
    _refuse_unknown(own, compiled)
    return CompiledContent(
        subject=_linked(own.subject, None, {name: part.text for name, part in compiled.items()}),
        html=_linked(own.html, layout.html if layout else None, {name: part.html for name, part in compiled.items()}),
        text=_linked(own.text, layout.text if layout else None, {name: part.text for name, part in compiled.items()}),
        locale=used,
    )


def _compile_part(part: TemplateContent, name: str, *, chain: Sequence[str]) -> CompiledContent:
    texts, _ = part.localized([*chain, *locale_chain(part.fallback)])
    return compile_content(
        texts, Template.TemplateKind.LAYOUT if name == TemplateSet.LAYOUT else Template.TemplateKind.PARTIAL
    )


def _linked(
    own: CompiledTemplate, layout: CompiledTemplate | None, partials: Mapping[str, CompiledTemplate]
) -> CompiledTemplate:
    """Return a text in its layout, with the texts of the partials. An empty text stays empty: it has no layout."""
    blocks = {name: partial.body for name, partial in partials.items()}
    framed = layout if layout and layout.body.nodes and own.body.nodes else None
    variables = [name for text in (framed, own, *partials.values()) if text for name in text.variables]
    return CompiledTemplate(
        framed.body if framed else own.body,
        tuple(dict.fromkeys(variables)),
        own.partials,
        {**blocks, CONTENT: own.body},
    )


def with_placeholder(layout: CompiledContent) -> CompiledContent:
    """Return a layout whose place of the content shows its tag, for a preview."""
    shown = Block(("{{{content}}}",), size_chars=len("{{{content}}}"))
    return replace(
        layout,
        **{
            part: replace(text := getattr(layout, part), blocks={**text.blocks, CONTENT: shown})
            for part in ("html", "text")
        },
    )


def _refuse_unknown(own: CompiledContent, partials: Mapping[str, Any]) -> None:
    """Raise TemplateSyntaxInvalid for a partial that a new subject names and that the template does not have."""
    for name in own.subject.partials:
        if name not in partials:
            raise _syntax_problem("subject", TemplateSyntaxError(unknown_partial(name), line=1, column=1))


def unknown_partial(name: str) -> CodedText:
    return CodedText("templates_app.unknown_partial", name=repr(name))


def render_content(
    compiled: CompiledContent, data: Mapping[str, Any], *, budget: RenderBudget | None = None
) -> RenderedContent:
    """Render compiled content with data. budget: the budget of a request that renders more than once.

    Raises rendering.OutputTooLarge.
    """
    budget, locale = budget or RenderBudget(), compiled.locale
    subject = render(compiled.subject, data, mode=RenderMode.SUBJECT, budget=budget, locale=locale)
    html = render(compiled.html, data, mode=RenderMode.HTML, budget=budget, locale=locale)
    text = render(compiled.text, data, mode=RenderMode.TEXT, budget=budget, locale=locale)
    missing = dict.fromkeys((*subject.missing, *html.missing, *text.missing))
    localized = _with_language(html.text, locale) if locale else html.text
    return RenderedContent(subject.text, localized, text.text, tuple(missing), locale)


def version_content(version: TemplateVersion) -> TemplateContent:
    return TemplateContent(
        subject=version.subject,
        html=version.html,
        text=version.text,
        locale=version.locale,
        locales=version.locales,
        fallback=tuple(version.fallback),
        layout_id=version.layout_id,
    )


def version_contents(versions: Mapping[str, TemplateVersion]) -> dict[str, TemplateContent]:
    """Return the contents of a layout and partials by their names in a set."""
    return {name: version_content(version) for name, version in versions.items()}


def _with_language(html: str, locale: str) -> str:
    """Return HTML whose root element has a language: that of the author, else the locale."""
    prologue = PROLOGUE.match(html)
    tag = TOKEN.match(html, prologue.end()) if prologue else None
    if tag is None or (tag[1] or "").lower() != "html":
        return html
    if any(name[1].lower() in {"lang", "xml:lang"} for name in ATTRIBUTE.finditer(tag[2])):
        return html
    return f'{html[: tag.end(1)]} lang="{locale}"{html[tag.end(1) :]}'


def _compiler(kind: str, part: str, source: str) -> Callable[[str], CompiledTemplate]:
    # A layout may have no text: then that of the template stays as it is.
    if kind == Template.TemplateKind.LAYOUT and part != "subject" and source.strip():
        return compile_layout
    return compile_template if kind == Template.TemplateKind.TEMPLATE else compile_partial


def _compiled(field: str, source: str, *, compiler: Callable[[str], CompiledTemplate]) -> CompiledTemplate:
    try:
        return compiler(source)
    except TemplateSyntaxError as error:
        raise _syntax_problem(field, error) from error


def _syntax_problem(field: str, error: TemplateSyntaxError) -> TemplateSyntaxInvalid:
    place: dict[str, Any] = {"field": field, "line": error.line, "column": error.column}
    return TemplateSyntaxInvalid(CodedText("templates_app.syntax_error", error=error, **place), **place)
