"""Templates as files: `NAME.html` with front matter in YAML, and `NAME.txt` for a separate plain text.

`_NAME.html` is a layout, `partials/NAME.html` a partial, and `NAME.de.html` the German texts of a template.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Optional, Union

import click
import yaml

from postrider_client.answers import Template, TemplateItem
from postrider_client.cli.content_files import HTML_SUFFIXES, TEXT_SUFFIXES, find_content_file

MARK = "---\n"
FRONT_MATTER = re.compile(r"\A---\r?\n(.*?)^---\r?\n", re.DOTALL | re.MULTILINE)
TITLES = {
    "name", "subject", "alias", "strict_variables", "sensitive", "deliver_within", "layout", "locale", "fallback",
}  # fmt: skip
# In front of the name of the file, by kind.
PLACES = {"template": "", "layout": "_", "partial": "partials/"}
TEMPLATE = "template"
LOCALE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
STATE = ".postrider.json"
# The aliases and ids of the service: never a path to another directory.
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
QUOTES = 'Put a value with special characters in quotes, such as subject: "Order {{number}}: sent".'
EMPTY = {None, "", "~", "null"}
DIGITS = re.compile(r"[0-9]{1,6}")
SWITCHES = {"true": True, "false": False}


@dataclass(frozen=True)
class TemplateContent:
    """The fields of a template that a file has. A final line break of the HTML and text does not count."""

    name: str
    subject: str
    alias: Optional[str]
    strict_variables: bool
    html_content: str
    text_content: str
    kind: str = TEMPLATE
    layout: Optional[str] = None
    locale: Optional[str] = None
    fallback: list[str] = field(default_factory=list)
    locales: dict[str, dict[str, str]] = field(default_factory=dict)
    sensitive: bool = False
    deliver_within: Optional[int] = None

    @property
    def fingerprint(self) -> str:
        """Return a hash of the fields; those of newer versions count only if they are used."""
        values = {name: value for name, value in asdict(self).items() if name not in ADDED or value != ADDED[name]}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    @property
    def request(self) -> dict[str, Any]:
        """Return the arguments of a request that changes a template; the kind does not change."""
        fields = {name: value for name, value in asdict(self).items() if name not in {"kind", "layout"}}
        if self.kind != TEMPLATE:
            del fields["subject"]
            return fields
        return {**fields, "layout_id": self.layout}


# The fields that files of older versions do not have, with their defaults.
ADDED: dict[str, Any] = {
    "kind": TEMPLATE,
    "layout": None,
    "locale": None,
    "fallback": [],
    "locales": {},
    "sensitive": False,
    "deliver_within": None,
}


def key_of(template: TemplateItem) -> str:
    """Return the name of the files of a template. Raises click.ClickException for one that may be a path."""
    key = template.alias or template.id
    if not KEY.fullmatch(key):
        raise click.ClickException(f"The template {key!r} of the service has no valid name for a file.")
    return key


def content_of(template: Template, layouts: Mapping[str, str]) -> TemplateContent:
    """Return the fields that the files have. layouts: the names of the files of layouts, by id."""
    return TemplateContent(
        name=template.name,
        subject=template.subject,
        alias=template.alias,
        strict_variables=template.strict_variables,
        html_content=template.html_content.rstrip("\n"),
        text_content=template.text_content.rstrip("\n"),
        kind=template.kind,
        layout=layouts.get(template.layout_id or ""),
        locale=template.locale,
        fallback=template.fallback,
        locales={
            locale: {name: text if name == "subject" else text.rstrip("\n") for name, text in texts.items()}
            for locale, texts in template.locales.items()
        },
        sensitive=template.sensitive,
        deliver_within=template.deliver_within,
    )


@dataclass(frozen=True)
class TemplateDirectory:
    """The files of templates. A file is named after the alias of its template, or after the id without one."""

    path: Path

    def read_all(self) -> dict[str, TemplateContent]:
        """Return the contents of the files by name. Raises click.ClickException that names all with errors."""
        contents: dict[str, Union[TemplateContent, click.ClickException]] = {}
        for file in self.files():
            key = file.stem.lstrip("_")
            if key in contents:
                raise click.ClickException(f"{file}: another template has the name {key}, too.")
            contents[key] = self._read(file)
        if problems := [one.message for one in contents.values() if isinstance(one, click.ClickException)]:
            raise click.ClickException(" ".join(problems))
        return {key: one for key, one in contents.items() if isinstance(one, TemplateContent)}

    def files(self) -> list[Path]:
        """Return the files of templates, layouts and partials, without those of other languages."""
        files = sorted([*self.path.glob("*.html"), *(self.path / "partials").glob("*.html")])
        return [file for file in files if not _is_of_locale(file)]

    def _read(self, file: Path) -> Union[TemplateContent, click.ClickException]:
        """Return the content of a file, or what is wrong with it."""
        try:
            self._refuse_foreign(file, HTML_SUFFIXES)
            content = _parse(file, kind=self._kind_of(file), plain=self._read_plain(file) or "")
            return replace(content, locales=dict(self._read_locales(file)))
        except click.ClickException as error:
            return error

    def _kind_of(self, file: Path) -> str:
        if file.parent != self.path:
            return "partial"
        return "layout" if file.stem.startswith("_") else TEMPLATE

    def _read_plain(self, file: Path) -> Optional[str]:
        text = file.with_name(f"{file.stem}.txt")
        if not text.exists():
            return None
        self._refuse_foreign(text, TEXT_SUFFIXES)
        return _read_text(text).rstrip("\n")

    def _read_locales(self, file: Path) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the texts of other languages: NAME.de.html, whose front matter may have a subject, and NAME.de.txt."""
        for html in self.locale_files(file):
            self._refuse_foreign(html, HTML_SUFFIXES)
            titles, body = _split(html)
            if unknown := titles.keys() - {"subject"}:
                raise click.ClickException(f"The front matter of {html} has unknown fields: {', '.join(unknown)}.")
            plain = self._read_plain(html)
            texts = {"subject": titles.get("subject"), "htmlContent": body.rstrip("\n") or None, "textContent": plain}
            yield html.stem.rpartition(".")[2], {name: text for name, text in texts.items() if text is not None}

    def locale_files(self, file: Path) -> list[Path]:
        """Return the files with the texts of a template in other languages."""
        files = sorted(file.parent.glob(f"{file.stem}.*.html"))
        return [one for one in files if _base_of(one) == file and _is_of_locale(one)]

    def _refuse_foreign(self, file: Path, suffixes: tuple[str, ...]) -> None:
        try:
            find_content_file(str(file.relative_to(self.path)), self.path, suffixes=suffixes)
        except (OSError, ValueError) as error:
            raise click.ClickException(f"{file} cannot be read: {error}") from error

    def has_other_text(self, key: str) -> bool:
        """Return whether NAME.txt is no part of a template here: there is no NAME.html."""
        return (self.path / f"{key}.txt").exists() and not (self.path / f"{key}.html").exists()

    def write(self, key: str, content: TemplateContent) -> None:
        """Write the files of a template, and delete those of languages that it does not have."""
        file = self.path / f"{PLACES[content.kind]}{key}.html"
        file.parent.mkdir(parents=True, exist_ok=True)
        for html in self.locale_files(file):
            if html.stem.rpartition(".")[2] not in content.locales:
                html.unlink()
                html.with_suffix(".txt").unlink(missing_ok=True)
        titles = {name: value for name, value in asdict(content).items() if name in TITLES and value not in (None, [])}
        if content.kind != TEMPLATE:
            del titles["subject"]
        if not content.sensitive:
            del titles["sensitive"]
        _write_text(file, f"{_front_matter(titles)}{content.html_content}\n")
        _write_plain(file, content.text_content or None)
        for locale, texts in content.locales.items():
            html = file.with_name(f"{file.stem}.{locale}.html")
            titles = {"subject": texts["subject"]} if "subject" in texts else {}
            _write_text(html, f"{_front_matter(titles)}{texts.get('htmlContent', '')}\n")
            _write_plain(html, texts.get("textContent"))


class PullState:
    """The fingerprints of templates at the last pull or push, for each service, in a file beside the templates.

    A file that differs from its fingerprint was changed here; a template that does was changed on the service.
    """

    def __init__(self, directory: Path, *, url: str) -> None:
        self._file = directory / STATE
        self._url = url
        self._services = _read_fingerprints(self._file) if self._file.exists() else {}

    def fingerprint(self, key: str) -> Optional[str]:
        return self._services.get(self._url, {}).get(key)

    def record(self, key: str, content: TemplateContent) -> None:
        """Store the fingerprint at once, so that an error in a later template does not lose it."""
        self._services.setdefault(self._url, {})[key] = content.fingerprint
        _write_text(self._file, json.dumps(self._services, indent=2) + "\n")


def _base_of(file: Path) -> Path:
    """Return the file of the template of which a file may have the texts in another language."""
    return file.with_name(f"{file.stem.rpartition('.')[0]}.html")


def _is_of_locale(file: Path) -> bool:
    """Return whether a file has the texts of another one in a language, and is no template, which has a name."""
    if not LOCALE.fullmatch(file.stem.rpartition(".")[2]) or not _base_of(file).exists():
        return False
    match = FRONT_MATTER.match(_read_text(file))
    return match is None or not re.search(r"^name\s*:", match[1], re.MULTILINE)


def _parse(file: Path, *, kind: str, plain: str) -> TemplateContent:
    titles, html = _split(file)
    if kind != TEMPLATE:
        titles = {"name": file.stem.lstrip("_"), **titles, "subject": ""}
    elif not titles:
        raise click.ClickException(f"{file} has no front matter: a block of YAML between two lines of ---.")
    return _checked(titles, file=file, kind=kind, html=html.rstrip("\n"), plain=plain)


def _split(file: Path) -> tuple[dict[str, Any], str]:
    """Return the front matter of a file, empty without one, and the HTML. Raises click.ClickException."""
    text = _read_text(file)
    match = FRONT_MATTER.match(text)
    if not match:
        return {}, text
    try:
        # All values are text: other loaders read the subject "12:30" as a number.
        titles = yaml.load(match[1], yaml.BaseLoader)  # noqa: S506 - it creates no objects
    except (yaml.YAMLError, RecursionError) as error:
        raise click.ClickException(_syntax_error(error, file=file)) from error
    if not isinstance(titles, dict):
        raise click.ClickException(f"The front matter of {file} needs name and subject.")
    return titles, text[match.end() :]


def _front_matter(titles: Mapping[str, Any]) -> str:
    if not titles:
        return ""
    return f"{MARK}{yaml.safe_dump(dict(titles), sort_keys=False, allow_unicode=True, width=1000)}{MARK}"


def _write_plain(file: Path, text: Optional[str]) -> None:
    """Write the plain text beside an HTML file; without one, delete its file."""
    plain = file.with_name(f"{file.stem}.txt")
    if text is None:
        plain.unlink(missing_ok=True)
    else:
        _write_text(plain, f"{text}\n")


def _syntax_error(error: Exception, *, file: Path) -> str:
    """Return the explanation of invalid YAML. Most of it is a value with a colon or a brace, without quotes."""
    mark = getattr(error, "problem_mark", None)
    # The first line of the file is the one in front of the YAML.
    place = f"{file}:{mark.line + 2}" if mark else str(file)
    problem = getattr(error, "problem", None) or "it cannot be read"
    return f"{place}: The front matter is not valid YAML: {problem}. {QUOTES}"


def _checked(titles: dict[str, Any], *, file: Path, kind: str, html: str, plain: str) -> TemplateContent:
    fallback = titles.pop("fallback", [])
    if not {"name", "subject"} <= titles.keys():
        raise click.ClickException(f"The front matter of {file} needs name and subject.")
    if unknown := titles.keys() - TITLES:
        raise click.ClickException(f"The front matter of {file} has unknown fields: {', '.join(map(str, unknown))}.")
    if not isinstance(fallback, list) or not all(isinstance(value, str) for value in fallback):
        raise click.ClickException(f"fallback in {file} must be a list of languages, such as [de, en].")
    if not all(isinstance(value, str) for value in titles.values()):
        raise click.ClickException(f"The fields in the front matter of {file} must be text. {QUOTES}")
    strict, alias = titles.get("strict_variables", "false").lower(), titles.get("alias")
    if strict not in SWITCHES:
        raise click.ClickException(f"strict_variables in {file} must be true or false.")
    sensitive = titles.get("sensitive", "false").lower()
    if sensitive not in SWITCHES:
        raise click.ClickException(f"sensitive in {file} must be true or false.")
    deliver_within = str(titles.get("deliver_within") or "")
    if deliver_within not in EMPTY and not DIGITS.fullmatch(deliver_within):
        raise click.ClickException(f"deliver_within in {file} must be a number of seconds.")
    return TemplateContent(
        name=titles["name"],
        subject=titles["subject"],
        alias=None if alias in EMPTY else alias,
        strict_variables=SWITCHES[strict],
        html_content=html,
        text_content=plain,
        kind=kind,
        layout=None if titles.get("layout") in EMPTY else titles["layout"],
        locale=None if titles.get("locale") in EMPTY else titles["locale"],
        fallback=fallback,
        sensitive=SWITCHES[sensitive],
        deliver_within=None if deliver_within in EMPTY else int(deliver_within),
    )


def _read_fingerprints(file: Path) -> dict[str, dict[str, str]]:
    try:
        services = json.loads(_read_text(file))
    except ValueError:
        services = None
    if not isinstance(services, dict) or not all(isinstance(keys, dict) for keys in services.values()):
        raise click.ClickException(f"{file} is not valid. Restore it, or delete it and run `postrider templates pull`.")
    return services


def _read_text(path: Path) -> str:
    # Line breaks are part of the content.
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
