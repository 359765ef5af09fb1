"""Templates as files: `NAME.html` with front matter in YAML, and `NAME.txt` for a separate plain text."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Optional, Union

import click
import yaml

from postrider_client.answers import Template, TemplateItem
from postrider_client.cli.content_files import HTML_SUFFIXES, TEXT_SUFFIXES, find_content_file

MARK = "---\n"
FRONT_MATTER = re.compile(r"\A---\r?\n(.*?)^---\r?\n", re.DOTALL | re.MULTILINE)
TITLES = {"name", "subject", "alias", "strict_variables"}
STATE = ".postrider.json"
# The aliases and ids of the service: never a path to another directory.
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
QUOTES = 'Put a value with special characters in quotes, such as subject: "Order {{number}}: sent".'
EMPTY = {None, "", "~", "null"}
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

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def key_of(template: TemplateItem) -> str:
    """Return the name of the files of a template. Raises click.ClickException for one that may be a path."""
    key = template.alias or template.id
    if not KEY.fullmatch(key):
        raise click.ClickException(f"The template {key!r} of the service has no valid name for a file.")
    return key


def content_of(template: Template) -> TemplateContent:
    return TemplateContent(
        name=template.name,
        subject=template.subject,
        alias=template.alias,
        strict_variables=template.strict_variables,
        html_content=template.html_content.rstrip("\n"),
        text_content=template.text_content.rstrip("\n"),
    )


@dataclass(frozen=True)
class TemplateDirectory:
    """The files of templates. A file is named after the alias of its template, or after the id without one."""

    path: Path

    def read_all(self) -> dict[str, TemplateContent]:
        """Return the contents of the files by name. Raises click.ClickException that names all with errors."""
        contents = {file.stem: self._read(file) for file in sorted(self.path.glob("*.html"))}
        if problems := [one.message for one in contents.values() if isinstance(one, click.ClickException)]:
            raise click.ClickException(" ".join(problems))
        return {key: one for key, one in contents.items() if isinstance(one, TemplateContent)}

    def _read(self, file: Path) -> Union[TemplateContent, click.ClickException]:
        """Return the content of a file, or what is wrong with it."""
        text = self._text_file(file.stem)
        try:
            self._refuse_foreign(file, HTML_SUFFIXES)
            plain = ""
            if text.exists():
                self._refuse_foreign(text, TEXT_SUFFIXES)
                plain = _read_text(text).rstrip("\n")
            return _parse(file, plain=plain)
        except click.ClickException as error:
            return error

    def _refuse_foreign(self, file: Path, suffixes: tuple[str, ...]) -> None:
        try:
            find_content_file(file.name, self.path, suffixes=suffixes)
        except (OSError, ValueError) as error:
            raise click.ClickException(f"{file} cannot be read: {error}") from error

    def has_other_text(self, key: str) -> bool:
        """Return whether NAME.txt is no part of a template here: there is no NAME.html."""
        return self._text_file(key).exists() and not (self.path / f"{key}.html").exists()

    def write(self, key: str, content: TemplateContent) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        titles = {name: value for name, value in asdict(content).items() if name in TITLES and value is not None}
        front = yaml.safe_dump(titles, sort_keys=False, allow_unicode=True, width=1000)
        _write_text(self.path / f"{key}.html", f"{MARK}{front}{MARK}{content.html_content}\n")
        if content.text_content:
            _write_text(self._text_file(key), f"{content.text_content}\n")
        else:
            self._text_file(key).unlink(missing_ok=True)

    def _text_file(self, key: str) -> Path:
        return self.path / f"{key}.txt"


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


def _parse(file: Path, *, plain: str) -> TemplateContent:
    text = _read_text(file)
    match = FRONT_MATTER.match(text)
    if not match:
        raise click.ClickException(f"{file} has no front matter: a block of YAML between two lines of ---.")
    try:
        # All values are text: other loaders read the subject "12:30" as a number.
        titles = yaml.load(match[1], yaml.BaseLoader)  # noqa: S506 - it creates no objects
    except (yaml.YAMLError, RecursionError) as error:
        raise click.ClickException(_syntax_error(error, file=file)) from error
    return _checked(titles, file=file, html=text[match.end() :].rstrip("\n"), plain=plain)


def _syntax_error(error: Exception, *, file: Path) -> str:
    """Return the explanation of invalid YAML. Most of it is a value with a colon or a brace, without quotes."""
    mark = getattr(error, "problem_mark", None)
    # The first line of the file is the one in front of the YAML.
    place = f"{file}:{mark.line + 2}" if mark else str(file)
    problem = getattr(error, "problem", None) or "it cannot be read"
    return f"{place}: The front matter is not valid YAML: {problem}. {QUOTES}"


def _checked(titles: Any, *, file: Path, html: str, plain: str) -> TemplateContent:
    if not isinstance(titles, Mapping) or not {"name", "subject"} <= titles.keys():
        raise click.ClickException(f"The front matter of {file} needs name and subject.")
    if unknown := titles.keys() - TITLES:
        raise click.ClickException(f"The front matter of {file} has unknown fields: {', '.join(map(str, unknown))}.")
    if not all(isinstance(value, str) for value in titles.values()):
        raise click.ClickException(f"The fields in the front matter of {file} must be text. {QUOTES}")
    strict, alias = titles.get("strict_variables", "false").lower(), titles.get("alias")
    if strict not in SWITCHES:
        raise click.ClickException(f"strict_variables in {file} must be true or false.")
    return TemplateContent(
        name=titles["name"],
        subject=titles["subject"],
        alias=None if alias in EMPTY else alias,
        strict_variables=SWITCHES[strict],
        html_content=html,
        text_content=plain,
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
