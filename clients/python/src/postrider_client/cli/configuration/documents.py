"""YAML with the line of each value. Only plain values are read, and no more than a limit."""

from dataclasses import dataclass
from typing import Any

import yaml

from postrider_client.cli.configuration.faults import Fault, InvalidFile, ValuePath, field_name

MAX_BYTES = 1024 * 1024
# An alias counts as often as it is used.
MAX_VALUES = 20_000
PREFIX = "tag:yaml.org,2002:"
CONVERTED = {PREFIX + name for name in ("null", "bool", "int", "float")}
# Dates and the like are strings for the API.
UNCONVERTED = {PREFIX + name for name in ("str", "timestamp", "value")}


@dataclass(frozen=True)
class Document:
    """The value of a file, and the line of each value by its path."""

    value: Any
    lines: dict[ValuePath, int]

    def line_of(self, path: ValuePath) -> int:
        """Return the line of a value, or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_document(text: str, *, file: str) -> Document:
    """Return the content of a YAML file. Raises InvalidFile."""
    if len(text.encode()) > MAX_BYTES:
        raise InvalidFile(file, [Fault(1, "", f"The file is larger than {MAX_BYTES:,} bytes.")])
    loader = yaml.SafeLoader(text)
    reader = _NodeReader(loader)
    try:
        node = loader.get_single_node()
        value = reader.read(node, ()) if node else {}
    except yaml.MarkedYAMLError as error:
        raise InvalidFile(file, [_syntax_fault(error)]) from error
    except yaml.YAMLError as error:
        raise InvalidFile(file, [Fault(1, "", str(error))]) from error
    except RecursionError:
        raise InvalidFile(file, [Fault(1, "", "The values are nested too deeply.")]) from None
    if reader.faults:
        raise InvalidFile(file, reader.faults)
    return Document(value, reader.lines)


def _syntax_fault(error: yaml.MarkedYAMLError) -> Fault:
    mark = error.problem_mark or error.context_mark
    message = ", ".join(part for part in (error.context, error.problem) if part)
    return Fault(mark.line + 1 if mark else 1, "", f"The YAML is invalid: {message}.")


class _NodeReader:
    """Converts the nodes of a document to values."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self.lines: dict[ValuePath, int] = {}
        self.faults: list[Fault] = []
        self._loader = loader

    def read(self, node: yaml.Node, path: ValuePath) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if len(self.lines) > MAX_VALUES:
            raise yaml.YAMLError(f"The file has more than {MAX_VALUES:,} values.")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: ValuePath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, line = key_node.value, key_node.start_mark.line + 1
            if key_node.tag != f"{PREFIX}str":
                self.faults.append(Fault(line, field_name(path), "A name must be a string. Quote it."))
            elif key in values:
                self.faults.append(Fault(line, field_name((*path, key)), "This name occurs twice."))
            else:
                self.lines[(*path, key)] = line
                values[key] = self.read(value_node, (*path, key))
        return values

    def _scalar(self, node: yaml.Node, path: ValuePath) -> Any:
        if node.tag in UNCONVERTED:
            return node.value
        try:
            if node.tag in CONVERTED:
                value = self._loader.construct_object(node)
                str(value)  # a ValueError for more digits than JSON can be written with
                return value
            problem = f"The tag {node.tag} is not allowed."
        except ValueError:
            problem = "This is not a number. Quote it if it is text."
        self.faults.append(Fault(node.start_mark.line + 1, field_name(path), problem))
        return None
