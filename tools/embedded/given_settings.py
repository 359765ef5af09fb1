"""Settings that the caller gives: as NAME, or as NAME_FILE, the path of a file with the value (docs/decisions/0105)."""

import re
from collections.abc import Mapping
from pathlib import Path

from tools.embedded.locations import REPOSITORY

FILE_SUFFIX = "_FILE"
# A provider's settings are not in .env.example.
PROVIDER_PREFIX = "ANYMAIL_"
# A setting is a line NAME=value in .env.example, possibly commented out.
SETTING = re.compile(r"^#? ?([A-Z][A-Z0-9_]*)=", re.MULTILINE)
ALWAYS = {
    "MODE", "DATA_DIR", "PORT", "PUBLIC_URL", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "APP_KEYS", "INBOX_PORT",
    "INBOUND_PORT", "SUBMISSION_PORTS",
}  # fmt: skip


def is_given(environment: Mapping[str, str], name: str) -> bool:
    """Return whether a setting has a value in one of its two forms; an empty value counts as unset."""
    return any(environment.get(form, "").strip() for form in (name, name + FILE_SUFFIX))


def override(settings: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return `settings` with the values of `given`, which also replace a value of the other form."""
    replaced = {_other_form(name) for name, value in given.items() if value.strip()}
    return {name: value for name, value in settings.items() if name not in replaced} | dict(given)


def settings_of_service(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of this service in an environment, in both forms."""
    names = _setting_names()
    return {name: value for name, value in environment.items() if _is_setting(name, names)}


def resolve_files(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the files of settings have absolute paths.

    The processes run in the repository; a relative path is relative to the caller's working directory.
    """
    caller = Path(environment.get("POSTRIDER_CALLED_FROM") or Path.cwd())
    files = {
        name: str((caller / value.strip()).resolve())
        for name, value in settings_of_service(environment).items()
        if name.endswith(FILE_SUFFIX) and value.strip()
    }
    return {**environment, **files}


def _is_setting(name: str, names: set[str]) -> bool:
    return name in names or name.removesuffix(FILE_SUFFIX) in names or name.startswith(PROVIDER_PREFIX)


def _setting_names() -> set[str]:
    example = REPOSITORY / ".env.example"
    return ALWAYS | set(SETTING.findall(example.read_text()) if example.exists() else ())


def _other_form(name: str) -> str:
    return name.removesuffix(FILE_SUFFIX) if name.endswith(FILE_SUFFIX) else name + FILE_SUFFIX
