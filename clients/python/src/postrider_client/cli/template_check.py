"""Problems of templates in files: `postrider templates check`, which needs no service."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from postrider_client.cli.template_files import PLACES, TEMPLATE, TemplateContent, TemplateDirectory

# Gmail shows no more than 102 kB of an email.
MAX_BYTES = 100_000
ERROR, WARNING = "error", "warning"
TAG = re.compile(r"\{\{\{?(?!\s*!)([^{}]{1,2000})\}\}")
PARTIAL = re.compile(r"\s*>\s*[\"']?([A-Za-z][\w.-]*)")
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
NAME = re.compile(r"[^\s=|()]+(?!=)")
# Words of the language, and names that are no data.
WORDS = re.compile(
    r"[#/>]|(?:else|if|unless|each|with|equals|notEquals|greaterThan|lessThan|and|or|this|content)\Z|@|true\Z|false\Z|[-\d]"
)
HELPERS = re.compile(r"(?:formatNumber|formatCurrency|formatDate)\s")
LINK = re.compile(r"(?:href|src|action|background)\s*=\s*[\"']?\s*http://", re.IGNORECASE)
IMAGE = re.compile(r"<img\b[^>]{0,5000}>", re.IGNORECASE)
ALT = re.compile(r"\salt\s*(?:=|\s|/?>)", re.IGNORECASE)
CONTENT = re.compile(r"\{\{\{\s*content\s*\}\}\}")
PARTS = {"subject": "subject", "htmlContent": "html_content", "textContent": "text_content"}


@dataclass(frozen=True)
class TemplateProblem:
    """A problem in a file.

    line: from 1.
    level: error or warning.
    code: for programs.
    """

    file: str
    line: int
    level: str
    code: str
    message: str


def needed_by(content: TemplateContent) -> set[str]:
    """Return the names of the layout and of the partials that a template needs."""
    sources = (text for texts in _texts(content).values() for text in texts.values())
    names = {name for source in sources for name, _ in _partials(source)}
    return names | ({content.layout} if content.layout else set())


def find_problems(directory: TemplateDirectory) -> Iterator[TemplateProblem]:
    """Yield the problems of all files. Raises click.ClickException for files that are no templates."""
    contents = directory.read_all()
    locales = sorted({locale for content in contents.values() for locale in content.locales})
    for key, content in sorted(contents.items(), key=lambda item: (item[1].kind, item[0])):
        checker = _Checker(directory.path, key, content, contents)
        yield from checker.problems(locales)


@dataclass(frozen=True)
class _Checker:
    """Checks one template among the others."""

    path: Path
    key: str
    content: TemplateContent
    others: Mapping[str, TemplateContent]

    def problems(self, locales: Iterable[str]) -> Iterator[TemplateProblem]:
        yield from self._layout()
        for locale, texts in _texts(self.content).items():
            for part, source in texts.items():
                yield from self._source(locale, part, source)
        yield from self._translations(locales)
        yield from self._variables()
        if self.content.kind == TEMPLATE and (size := self._size(self.content, [])) > MAX_BYTES:
            yield self._problem(
                ("", "htmlContent"), 0, WARNING, "weight", f"The HTML has {size:,} bytes, above 100 kB."
            )

    def _layout(self) -> Iterator[TemplateProblem]:
        layout = self.content.layout
        if layout and (layout not in self.others or self.others[layout].kind != "layout"):
            yield self._problem(("", "htmlContent"), 0, ERROR, "unknown_layout", f"There is no layout {layout}.")
        if self.content.kind != "layout":
            return
        for locale, texts in _texts(self.content).items():
            for part in ("htmlContent", "textContent"):
                if texts.get(part) and len(CONTENT.findall(texts[part])) != 1:
                    message = "A layout has {{{content}}} once."
                    yield self._problem((locale, part), 0, ERROR, "content_placeholder", message)

    def _source(self, locale: str, part: str, source: str) -> Iterator[TemplateProblem]:
        for name, offset in _partials(source):
            if name not in self.others or self.others[name].kind != "partial":
                message = f"There is no partial {name}."
                yield self._problem((locale, part), self._line(source, offset), ERROR, "unknown_partial", message)
        if part != "htmlContent":
            return
        for found in LINK.finditer(source):
            line = self._line(source, found.start())
            yield self._problem((locale, part), line, WARNING, "insecure_link", "A link or image is not https.")
        for found in IMAGE.finditer(source):
            if not ALT.search(found[0]):
                line = self._line(source, found.start())
                yield self._problem((locale, part), line, WARNING, "image_without_text", "An image has no alt text.")

    def _translations(self, locales: Iterable[str]) -> Iterator[TemplateProblem]:
        default = _texts(self.content)[""]
        for locale in locales:
            if locale == self.content.locale:
                continue
            texts = self.content.locales.get(locale)
            if texts is None:
                message = f"There are no texts in {locale}, which other templates have."
                yield self._problem(("", "htmlContent"), 0, WARNING, "missing_translation", message)
                continue
            for part in PARTS:
                if default.get(part) and part not in texts:
                    message = f"The {part} is not translated."
                    yield self._problem((locale, part), 0, WARNING, "missing_translation", message)

    def _variables(self) -> Iterator[TemplateProblem]:
        """Yield the parts that have other variables than the same part in the language of the template."""
        default = _texts(self.content)[""]
        for locale, texts in self.content.locales.items():
            for part, source in texts.items():
                names = _variables(source) ^ _variables(default.get(part) or "")
                if names and default.get(part):
                    message = f"The variables differ between the languages: {', '.join(sorted(names))}."
                    yield self._problem((locale, part), 0, WARNING, "different_variables", message)

    def _size(self, content: TemplateContent, above: list[TemplateContent]) -> int:
        """Return the bytes of the HTML with its layout and partials; one that contains itself counts once."""
        if content in above:
            return 0
        inner = [self.others[name] for name, _ in _partials(content.html_content) if name in self.others]
        if content.layout in self.others:
            inner.append(self.others[content.layout or ""])
        sizes = (self._size(one, [*above, content]) for one in inner) if len(above) < len(self.others) else ()
        return len(content.html_content.encode()) + sum(sizes)

    def _line(self, source: str, offset: int) -> int:
        return source.count("\n", 0, offset) + 1

    def _problem(self, place: tuple[str, str], line: int, level: str, code: str, message: str) -> TemplateProblem:
        """Return a problem.

        place: the language and the part.
        line: in the part, or 0 for the whole of it.
        """
        locale, part = place
        suffix = "txt" if part == "textContent" else "html"
        file = self.path / f"{PLACES[self.content.kind]}{self.key}{f'.{locale}' if locale else ''}.{suffix}"
        before = _lines_before(file) if line and part == "htmlContent" else 0
        return TemplateProblem(str(file), max(line, 1) + before, level, code, message)


def _texts(content: TemplateContent) -> dict[str, dict[str, str]]:
    """Return the texts by language; those of the template itself are in the empty one."""
    return {"": {part: getattr(content, name) for part, name in PARTS.items()}, **content.locales}


def _partials(source: str) -> Iterator[tuple[str, int]]:
    for tag in TAG.finditer(source):
        if found := PARTIAL.match(tag[1]):
            yield found[1], tag.start()


def _variables(source: str) -> set[str]:
    """Return the names of the data that a text uses."""
    names: set[str] = set()
    for tag in TAG.finditer(source):
        words = NAME.findall(QUOTED.sub("", HELPERS.sub("", tag[1].split("|", 1)[0].strip())))
        if not tag[1].strip().startswith("/"):
            names |= {word for word in words if not WORDS.match(word)}
    return names


def _lines_before(file: Path) -> int:
    """Return the lines of the front matter."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    end = text.find("\n---", 3)
    return text.count("\n", 0, end) + 2 if text.startswith("---") and end > 0 else 0
