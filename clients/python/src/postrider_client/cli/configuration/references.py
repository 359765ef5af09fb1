"""References to environment variables in the values of a file: `${NAME}`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from postrider_client.cli.configuration.documents import Document
from postrider_client.cli.configuration.faults import Fault, ValuePath, field_name

# `$${` is a literal `${`.
REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[^}]*)\}?")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Shorter values are not secrets, and occur in other texts by chance.
MIN_SECRET_LENGTH = 6


@dataclass
class References:
    """Replaces references by values of the environment, and the values by the references again in output."""

    environment: Mapping[str, str]
    document: Document
    faults: list[Fault] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)

    def expand(self, value: Any, path: ValuePath = ()) -> Any:
        """Return a value with all its references replaced. Errors are added to `faults`."""
        if isinstance(value, dict):
            return {key: self.expand(one, (*path, key)) for key, one in value.items()}
        if isinstance(value, list):
            return [self.expand(one, (*path, index)) for index, one in enumerate(value)]
        if not isinstance(value, str):
            return value
        return REFERENCE.sub(lambda match: self._value_of(match, path), value)

    def _value_of(self, match: "re.Match[str]", path: ValuePath) -> str:
        name = match["name"]
        if name is None:
            return "${"
        if not NAME.fullmatch(name) or not match[0].endswith("}"):
            self._report(path, f"{match[0][:40]} is not a reference such as ${{NAME}}. Write $${{ for a literal ${{.")
        elif not self.environment.get(name):
            self._report(path, f"The environment variable {name} is not set.")
        else:
            self.used[self.environment[name]] = name
            return self.environment[name]
        return ""

    def _report(self, path: ValuePath, message: str) -> None:
        self.faults.append(Fault(self.document.line_of(path), field_name(path), message))

    def hide(self, value: Any) -> Any:
        """Return a value for output, with references in place of the values of variables in all its texts.

        Only values are searched, not JSON, in which quotes and line breaks of secrets are escaped.
        """
        if isinstance(value, dict):
            return {key: self.hide(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.hide(one) for one in value]
        return self._hide_in_text(value) if isinstance(value, str) else value

    def _hide_in_text(self, text: str) -> str:
        for value in sorted(self.used, key=len, reverse=True):
            if len(value) >= MIN_SECRET_LENGTH:
                text = text.replace(value, f"${{{self.used[value]}}}")
        return text
