"""manage.py document_settings: write docs/settings.md from the code and .env.example; a test compares them.

Descriptions and their order come from .env.example; defaults and permitted values from the readers in config.env.
"""

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config import env

WIDTH = 118
MODES = ("production", "embedded")
READ_DECLARED = (
    "import json, config.settings, config.env as env;"
    "print(json.dumps({name: [setting.default, setting.form] for name, setting in env.declared.items()}))"
)
INTRODUCTION = """\
# Settings

Settings are environment variables. Postrider refuses to start with a missing or invalid setting and names it;
`manage.py check` shows all of them. All processes need the same settings. A setting marked as secret can also be given
as `NAME_FILE`, the path of a file with the value. Defaults apply to production; `MODE=embedded`, the mode of
`bin/run`, has the others where shown. `manage.py document_settings` writes this page.
"""


@dataclass(frozen=True)
class SettingEntry:
    """One or more settings with one description, and the section that they belong to."""

    section: str
    names: tuple[str, ...]
    description: str


class Command(BaseCommand):
    help = "Write docs/settings.md from the code and .env.example."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        (settings.BASE_DIR / "docs" / "settings.md").write_text(settings_page(), encoding="utf-8")


def settings_page() -> str:
    """Return the Markdown of docs/settings.md."""
    declared = {mode: _declared(mode) for mode in MODES}
    lines, section = [INTRODUCTION], ""
    for entry in _entries((settings.BASE_DIR / ".env.example").read_text(encoding="utf-8")):
        if entry.section != section:
            section = entry.section
            lines.append(f"## {section}\n")
        lines.append(_entry_text(entry, declared))
    return "\n".join(lines)


def _declared(mode: str) -> dict[str, tuple[str, str]]:
    """Return default and form of each setting in a mode, read by a process without other settings."""
    done = subprocess.run(
        [sys.executable, "-c", READ_DECLARED],
        env={"MODE": mode},
        cwd=settings.BASE_DIR,
        check=True,
        capture_output=True,
        text=True,
    )
    declared: dict[str, tuple[str, str]] = {name: tuple(fields) for name, fields in json.loads(done.stdout).items()}
    return declared


def _entries(text: str) -> Iterator[SettingEntry]:
    """Yield the entries of .env.example: a comment, then its settings; a comment alone is the title of a section."""
    section = ""
    for block in re.split(r"\n\s*\n", text.strip()):
        if "\n" not in block and block.startswith("#"):
            section = block.lstrip("# ")
        elif section:
            for comment, names in re.findall(r"((?:^#.*\n)+)((?:^[A-Z_0-9]+=.*\n?)+)", block + "\n", re.MULTILINE):
                description = " ".join(line.lstrip("# ") for line in comment.splitlines())
                yield SettingEntry(section, tuple(re.findall(r"^([A-Z_0-9]+)=", names, re.MULTILINE)), description)


def _entry_text(entry: SettingEntry, declared: dict[str, dict[str, tuple[str, str]]]) -> str:
    heading = ", ".join(f"`{name}`" for name in entry.names)
    without_modes = re.sub(r"\s*\(embedded: [^)]*\)", "", entry.description)
    description = re.sub(r"([*<])", r"\\\1", without_modes)
    paragraph = _wrap(f"{description}.")
    facts = [line for name in entry.names for line in _facts(name, declared, is_only=len(entry.names) == 1)]
    return "\n".join([f"### {heading}\n", f"{paragraph}\n", *facts, ""]) if facts else f"### {heading}\n\n{paragraph}\n"


def _facts(name: str, declared: dict[str, dict[str, tuple[str, str]]], *, is_only: bool) -> list[str]:
    """Return a list item with default, permitted values and secrecy of a setting."""
    if name not in declared["production"]:
        return []
    (production, form), (embedded, _) = (declared[mode][name] for mode in MODES)
    facts = [f"default {_code(production)}" + (f", embedded {_code(embedded)}" if embedded != production else "")]
    facts += [form] if form else []
    facts += [f"secret: `{name}_FILE` is possible"] if env.is_secret(name) else []
    return [_wrap(f"- {'' if is_only else f'`{name}`: '}{'; '.join(facts)}", indent="  ")]


def _wrap(text: str, *, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _code(value: str) -> str:
    return f"`{value}`" if value else "empty"
