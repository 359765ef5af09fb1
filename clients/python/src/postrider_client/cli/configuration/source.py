"""Reads a configuration file: references and included files are replaced by their content."""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from postrider_client.cli.configuration.documents import MAX_BYTES, Document, read_document
from postrider_client.cli.configuration.faults import Fault, InvalidFile, ValuePath, field_name
from postrider_client.cli.configuration.kinds import KINDS, Kind
from postrider_client.cli.configuration.references import References
from postrider_client.cli.content_files import HTML_SUFFIXES, TEXT_SUFFIXES, find_content_file

STDIN = "-"
WORKSPACES = "workspaces"
# Names of files in a template, the fields that receive their content, and the suffixes of the files.
INCLUDED = {"htmlFile": ("htmlContent", HTML_SUFFIXES), "textFile": ("textContent", TEXT_SUFFIXES)}


@dataclass(frozen=True)
class WorkspaceSource:
    """A workspace as the file describes it, with the names of the API. path: the path of its values in the file."""

    path: ValuePath
    values: Mapping[str, Any]

    @property
    def label(self) -> str:
        return str(self.values.get("name") or self.values.get("id") or "the workspace")

    def entries(self, section: str) -> list[Mapping[str, Any]]:
        """Return the objects of a section that is known to be valid."""
        return list(self.values.get(section, ()))


@dataclass(frozen=True)
class ConfigurationFile:
    """A file that was read. is_list: whether it has a list of workspaces, for a management key."""

    name: str
    document: Document
    references: References
    workspaces: tuple[WorkspaceSource, ...]
    is_list: bool

    def fault(self, path: ValuePath, message: str) -> Fault:
        """Return an error at a value, without the secrets that the message may have from the service."""
        return Fault(self.document.line_of(path), field_name(path), self.references.hide(message))


def read_configuration(name: str) -> tuple[ConfigurationFile, list[Fault]]:
    """Return a file with the errors that do not need the service. Raises InvalidFile, OSError.

    name: a path, or - for standard input.
    """
    directory = Path() if name == STDIN else Path(name).parent
    file = "standard input" if name == STDIN else name
    document = read_document(_text_of(name, file), file=file)
    if not document.value:
        raise InvalidFile(file, [Fault(1, "", "The file is empty. It needs at least one field, such as `domains:`.")])
    if not isinstance(document.value, dict):
        raise InvalidFile(file, [Fault(1, "", "The file must be a mapping, such as `domains:`.")])
    references = References(os.environ, document)
    values = references.expand(document.value)
    included = _Includer(document, directory, references.faults)
    workspaces = tuple(WorkspaceSource(path, included.workspace(one, path)) for path, one in _workspaces(values))
    source = ConfigurationFile(file, document, references, workspaces, is_list=WORKSPACES in values)
    return source, [*references.faults, *_structure_faults(source, values)]


def _text_of(name: str, file: str) -> str:
    try:
        if name == STDIN:
            return sys.stdin.buffer.read(MAX_BYTES + 1).decode()
        with Path(name).open("rb") as opened:
            return opened.read(MAX_BYTES + 1).decode()
    except UnicodeDecodeError as error:
        raise InvalidFile(file, [Fault(1, "", "The file is not UTF-8.")]) from error


def _workspaces(values: Mapping[str, Any]) -> Iterator[tuple[ValuePath, Mapping[str, Any]]]:
    if WORKSPACES not in values:
        yield (), values
        return
    workspaces = values[WORKSPACES]
    for index, one in enumerate(workspaces if isinstance(workspaces, list) else ()):
        if isinstance(one, dict):
            yield (WORKSPACES, index), one


def _structure_faults(source: ConfigurationFile, values: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield errors of the structure that the service does not see."""
    if source.is_list:
        yield from _list_faults(source, values)
    names = Counter(workspace.label for workspace in source.workspaces)
    for workspace in source.workspaces:
        if names[workspace.label] > 1:
            yield source.fault((*workspace.path, "name"), "The file describes two workspaces with this name.")
        yield from _repeated_entries(source, workspace)


def _list_faults(source: ConfigurationFile, values: Mapping[str, Any]) -> Iterator[Fault]:
    workspaces = values[WORKSPACES]
    if not isinstance(workspaces, list):
        yield source.fault((WORKSPACES,), "This must be a list.")
    elif len(workspaces) != len(source.workspaces):
        yield source.fault((WORKSPACES,), "Each workspace must be a mapping.")
    for name in values:
        if name != WORKSPACES:
            yield source.fault((name,), "With `workspaces`, all fields belong to one of the workspaces.")
    for workspace in source.workspaces:
        if not workspace.values.get("name") and not workspace.values.get("id"):
            yield source.fault(workspace.path, "A workspace needs a name.")


def _repeated_entries(source: ConfigurationFile, workspace: WorkspaceSource) -> Iterator[Fault]:
    for kind in KINDS:
        seen: dict[Any, int] = {}
        entries = workspace.values.get(kind.section)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            identity = str(kind.identity_of(entry)) if isinstance(entry, dict) else None
            first = seen.setdefault(identity, index)
            if identity and first != index and _has_identity(kind, entry):
                line = source.document.line_of((*workspace.path, kind.section, first))
                yield source.fault(
                    (*workspace.path, kind.section, index), f"The same {kind.name} is in line {line} already."
                )


def _has_identity(kind: Kind, entry: Mapping[str, Any]) -> bool:
    return all(entry.get(name) for name in kind.identity if name not in kind.optional)


def _text_of_file(path: Path) -> str:
    """Return the text of a file. Raises OSError, ValueError."""
    with path.open("rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"It is larger than {MAX_BYTES:,} bytes.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("It is not UTF-8.") from None


@dataclass(frozen=True)
class _Includer:
    """Replaces the names of files in templates by their content."""

    document: Document
    directory: Path
    faults: list[Fault]

    def workspace(self, values: Mapping[str, Any], path: ValuePath) -> Mapping[str, Any]:
        if isinstance(values.get("name"), str):
            values = {**values, "name": values["name"].strip()}
        templates = values.get("templates")
        if not isinstance(templates, list):
            return values
        paths = [(*path, "templates", index) for index in range(len(templates))]
        return {**values, "templates": [self._template(one, at) for one, at in zip(templates, paths)]}

    def _template(self, values: Any, path: ValuePath) -> Any:
        if not isinstance(values, dict):
            return values
        result = {name: value for name, value in values.items() if name not in INCLUDED}
        for name, (content_name, _suffixes) in INCLUDED.items():
            if name in values:
                self._include(values[name], (*path, name), result, content_name)
        locales = values.get("locales")
        if isinstance(locales, dict):
            result["locales"] = {
                locale: self._template(texts, (*path, "locales", locale)) for locale, texts in locales.items()
            }
        return result

    def _include(self, file: Any, path: ValuePath, result: dict[str, Any], content_name: str) -> None:
        if content_name in result:
            self._report(path, f"Give either {path[-1]} or {content_name}.")
        # Errors about the content are reported at the name of its file.
        self.document.lines[(*path[:-1], content_name)] = self.document.line_of(path)
        result[content_name] = self._content(file, path) or ""

    def _content(self, file: Any, path: ValuePath) -> Optional[str]:
        if not isinstance(file, str) or not file:
            self._report(path, "This must be the name of a file.")
            return None
        _content_name, suffixes = INCLUDED[str(path[-1])]
        try:
            return _text_of_file(find_content_file(file, self.directory, suffixes=suffixes))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self._report(path, f"{file} cannot be read: {reason}")
            return None

    def _report(self, path: ValuePath, message: str) -> None:
        self.faults.append(Fault(self.document.line_of(path), field_name(path), message))
